// Cells that agents changed: who did, and a choice to accept or to undo. Nothing is in the file.
import type { NotebookPanel } from '@jupyterlab/notebook';

import { addHeader, CellBars, makeBar, makeButton } from './bars';
import type { Facts } from './wire';

type Change = { id: string; actor: string; kind: string };

/** Marks what agents change in one tab, until the person has accepted or undone it. */
export class Review {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly undoInEngine: (changes: string[]) => Promise<unknown>
  ) {
    this.bars = new CellBars(panel);
  }

  /** Note an event `changed` of the engine. */
  note(event: Facts): void {
    const change: Change = { id: event.change, actor: event.actor, kind: event.kind };
    if (!change.id) {
      return;
    }
    const here = new Set([...this.panel.content.model!.cells].map(model => model.id));
    const cells = event.cells as string[];
    for (const cell of cells.filter(each => here.has(each))) {
      this.open.set(cell, [...(this.open.get(cell) ?? []), change]);
      this.show(cell);
    }
    const gone = cells.filter(each => !here.has(each));
    if (gone.length) {
      this.showDeleted(change, gone);
    }
  }

  accept(cell: string): void {
    this.open.delete(cell);
    this.bars.delete(cell);
  }

  acceptAll(): void {
    this.open.clear();
    this.bars.clear();
    this.deleted.forEach(({ close }) => close());
    this.deleted.clear();
  }

  async undoAll(): Promise<void> {
    const ids = [...this.open.values()].flat().map(change => change.id);
    await this.undo([...new Set([...ids, ...this.deleted.keys()])]);
  }

  /** Undo changes as one; what the engine refuses is said above the notebook. */
  async undo(ids: string[]): Promise<void> {
    if (!ids.length) {
      return;
    }
    try {
      await this.undoInEngine(ids);
    } catch (error) {
      this.report(`It was not undone: ${(error as Error).message}`);
      return;
    }
    for (const [cell, changes] of this.open) {
      const left = changes.filter(change => !ids.includes(change.id));
      if (left.length) {
        this.open.set(cell, left);
        this.show(cell);
      } else {
        this.accept(cell);
      }
    }
    for (const id of ids) {
      this.deleted.get(id)?.close();
      this.deleted.delete(id);
    }
  }

  /** Say something above the notebook, until the person has read it. */
  report(text: string): void {
    const close = addHeader(
      this.panel,
      makeBar('cw-header', text, makeButton('Close', () => close()))
    );
  }

  private show(cell: string): void {
    const changes = this.open.get(cell)!;
    const newest = changes[changes.length - 1];
    const who = [...new Set(changes.map(change => change.actor))].join(', ');
    this.bars.set(
      cell,
      makeBar(
        'cw-review',
        `Changed by ${who}`,
        makeButton('Accept', () => this.accept(cell)),
        makeButton('Undo', () => void this.undo([newest.id]))
      )
    );
  }

  private showDeleted(change: Change, cells: string[]): void {
    const what = cells.length === 1 ? 'a cell' : `${cells.length} cells`;
    const accept = () => {
      this.deleted.get(change.id)?.close();
      this.deleted.delete(change.id);
    };
    const bar = makeBar(
      'cw-header cw-review',
      `${change.actor} deleted ${what}`,
      makeButton('Accept', accept),
      makeButton('Undo', () => void this.undo([change.id]))
    );
    this.deleted.set(change.id, { close: addHeader(this.panel, bar) });
  }

  private readonly bars: CellBars;
  private readonly open = new Map<string, Change[]>();
  private readonly deleted = new Map<string, { close: () => void }>();
}
