// The changes of agents that the person has not decided about yet: by cell, and by turn.
import type { Facts } from './wire';

/** One change: `cells` are those that are still open. */
export type Change = { id: string; actor: string; when: number; cells: Set<string>; added: Set<string> };

/** Changes of one agent that follow each other within so many seconds are one turn. */
const PAUSE = 60;

/** Keeps changes in their order. */
export class OpenChanges {
  /** Note an event `changed`; returns the change, or nothing if it is known or not on record. */
  add(event: Facts): Change | undefined {
    if (!event.change || this.changes.some(each => each.id === event.change)) {
      return undefined;
    }
    const { change: id, actor, when } = event;
    const change = {
      id,
      actor,
      when,
      cells: new Set<string>(event.cells),
      added: new Set<string>(event.inserted)
    };
    this.changes.push(change);
    return change;
  }

  /** The changes of a cell, the oldest first. */
  of(cell: string): Change[] {
    return this.changes.filter(change => change.cells.has(cell));
  }

  get(id: string): Change | undefined {
    return this.changes.find(change => change.id === id);
  }

  list(): string[] {
    return this.changes.map(change => change.id);
  }

  /** The changes that belong to the same turn of an agent as this one. */
  listTurn(id: string): string[] {
    const actor = this.get(id)?.actor;
    const ofActor = this.changes.filter(change => change.actor === actor);
    const place = ofActor.findIndex(change => change.id === id);
    let [from, to] = [place, place];
    while (from > 0 && ofActor[from].when - ofActor[from - 1].when <= PAUSE) {
      from--;
    }
    while (to < ofActor.length - 1 && ofActor[to + 1].when - ofActor[to].when <= PAUSE) {
      to++;
    }
    return ofActor.slice(from, to + 1).map(change => change.id);
  }

  /** Forget that these changes touched these cells, or any; returns the cells. */
  close(ids: string[], cells?: string[]): string[] {
    const closed = new Set<string>();
    for (const change of this.changes.filter(each => ids.includes(each.id))) {
      for (const cell of cells ?? [...change.cells]) {
        change.cells.delete(cell);
        closed.add(cell);
      }
    }
    this.changes = this.changes.filter(change => change.cells.size);
    return [...closed];
  }

  private changes: Change[] = [];
}
