// Cells that agents changed: who did, what, and a choice to accept or to undo. Nothing is in the file.
import type { NotebookPanel } from '@jupyterlab/notebook';

import { addHeader, CellBars, makeBar, makeButton, makeDiff } from './bars';
import { Change, OpenChanges } from './changes';
import { diffLines } from './diff';
import type { Facts } from './wire';

/** What the engine does for a review. */
export type ReviewCalls = {
  undo: (changes: string[]) => Promise<unknown>;
  /** Remembered by the engine, so that a page that is loaded again does not show them. */
  accept: (changes: string[], cells: string[]) => void;
  /** The source of a cell before a change; null if there was no such cell. */
  readBefore: (cell: string, change: string) => Promise<string | null>;
};

/** Marks what agents change in one tab, until the person has accepted or undone it. */
export class Review {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly engine: ReviewCalls
  ) {
    this.bars = new CellBars(panel);
  }

  /** Note an event `changed` of the engine. */
  note(event: Facts): void {
    const change = this.changes.add(event);
    if (change) {
      change.cells.forEach(cell => this.show(cell));
      this.showDeleted(change);
    }
  }

  /** Note that the changes were accepted, here or in another page. */
  close(ids: string[], cells?: string[]): void {
    this.changes.close(ids, cells).forEach(cell => this.show(cell));
    for (const [id, close] of this.headers) {
      const change = this.changes.get(id);
      if (!change || !this.findDeleted(change).length) {
        close();
        this.headers.delete(id);
      }
    }
  }

  accept(ids: string[], cells: string[]): void {
    this.engine.accept(ids, cells);
    this.close(ids, cells);
  }

  acceptAll(): void {
    for (const id of this.changes.list()) {
      this.accept([id], [...this.changes.get(id)!.cells]);
    }
  }

  async undoAll(): Promise<void> {
    await this.undo(this.changes.list());
  }

  /** Undo changes as one; what the engine refuses is said above the notebook. */
  async undo(ids: string[]): Promise<void> {
    if (!ids.length) {
      return;
    }
    try {
      await this.engine.undo(ids);
    } catch (error) {
      this.report(`It was not undone: ${(error as Error).message}`);
      return;
    }
    this.close(ids);
  }

  /** Say something above the notebook, until the person has read it. */
  report(text: string): void {
    const close = addHeader(
      this.panel,
      makeBar(
        'cw-header',
        text,
        makeButton('Close', () => close())
      )
    );
  }

  private isHere(cell: string): boolean {
    return [...this.panel.content.model!.cells].some(model => model.id === cell);
  }

  private findDeleted(change: Change): string[] {
    return [...change.cells].filter(cell => !this.isHere(cell));
  }

  private show(cell: string): void {
    const changes = this.changes.of(cell);
    if (!changes.length || !this.isHere(cell)) {
      this.bars.delete(cell);
      return;
    }
    const who = [...new Set(changes.map(change => change.actor))].join(', ');
    const what = changes[0].added.has(cell) ? 'Added' : 'Changed';
    const ids = changes.map(change => change.id);
    const buttons = [
      makeButton('Accept', () => this.accept(ids, [cell])),
      ...this.makeUndoButtons(ids[ids.length - 1]),
      makeButton('Diff', () => void this.toggleDiff(cell, bar))
    ];
    const bar = makeBar('cw-review', `${what} by ${who}`, ...buttons);
    this.bars.set(cell, bar);
  }

  private makeUndoButtons(id: string, label = 'Undo'): HTMLElement[] {
    const buttons = [makeButton(label, () => void this.undo([id]))];
    // How many changes the turn has is known when it is asked for.
    const undoTurn = makeButton('Undo turn', () => void this.undo(this.changes.listTurn(id)));
    undoTurn.title = 'Undo all that this agent did in one go';
    return [...buttons, undoTurn];
  }

  /** Show what became of a cell, inside it; a second time takes it away. */
  private async toggleDiff(cell: string, bar: HTMLElement): Promise<void> {
    const shown = bar.querySelector('.cw-diff');
    if (shown) {
      shown.remove();
      return;
    }
    const [first] = this.changes.of(cell);
    const model = [...this.panel.content.model!.cells].find(each => each.id === cell);
    if (!first || !model) {
      return;
    }
    try {
      const before = (await this.engine.readBefore(cell, first.id)) ?? '';
      bar.append(makeDiff(diffLines(before, model.sharedModel.getSource())));
    } catch (error) {
      this.report(`What it was before is not known: ${(error as Error).message}`);
    }
  }

  private showDeleted(change: Change): void {
    const cells = this.findDeleted(change);
    if (!cells.length) {
      return;
    }
    const what = cells.length === 1 ? 'a cell' : `${cells.length} cells`;
    const bar = makeBar(
      'cw-header cw-review',
      `${change.actor} deleted ${what}`,
      makeButton('Accept', () => this.accept([change.id], this.findDeleted(change))),
      ...this.makeUndoButtons(change.id, 'Restore')
    );
    this.headers.set(change.id, addHeader(this.panel, bar));
  }

  private readonly bars: CellBars;
  private readonly changes = new OpenChanges();
  private readonly headers = new Map<string, () => void>();
}
