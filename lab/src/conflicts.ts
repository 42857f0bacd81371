// Cells that the person and another program have both changed: both versions, and a choice.
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CellBars, makeBar, makeButton, makeText } from './bars';

export type Conflict = { cell: string; current: string | null; other: string | null };

/** Shows conflicts in their cells until the person has chosen; then the file may be saved over. */
export class Conflicts {
  constructor(private readonly panel: NotebookPanel) {
    // A cell that the person deletes is a choice too.
    this.bars = new CellBars(panel, () => this.settle());
  }

  /** The cells that are in conflict. */
  get open(): string[] {
    return this.bars.keys();
  }

  /** The notebook has what a file with this hash has: once nothing is in conflict, saving does not ask. */
  know(hash: string): void {
    this.merged = { hash, before: this.panel.context.contentsModel?.hash };
    this.settle();
  }

  /** Show new conflicts; `hash` is that of the file that was merged. */
  show(hash: string, conflicts: Conflict[]): void {
    for (const conflict of conflicts) {
      this.bars.set(conflict.cell, this.makeBar(conflict));
    }
    this.know(hash);
  }

  /** At once, since an agent may save right after a choice; but a file that was saved since is newer. */
  private settle(): void {
    const { panel, merged } = this;
    const { context } = panel;
    if (!this.bars.size && merged && merged.before === context.contentsModel?.hash) {
      // Private in JupyterLab 4: there is no other way to say that a file was read by us.
      (context as any)._updateContentsModel({ ...context.contentsModel, hash: merged.hash });
    }
  }

  private makeBar(conflict: Conflict): HTMLElement {
    const other = conflict.other ?? 'Another program deleted this cell.';
    return makeBar(
      'cw-conflict',
      'Changed here and in the file. The file has:',
      makeButton('Keep mine', () => this.close(conflict)),
      makeButton('Take the file’s', () => {
        this.take(conflict);
        this.close(conflict);
      }),
      makeText('pre', other)
    );
  }

  private close(conflict: Conflict): void {
    this.bars.delete(conflict.cell);
    this.settle();
  }

  private take(conflict: Conflict): void {
    const notebook = this.panel.content.model!.sharedModel;
    const index = notebook.cells.findIndex(cell => cell.id === conflict.cell);
    if (index >= 0 && conflict.other === null) {
      notebook.deleteCell(index);
    } else if (index >= 0) {
      notebook.cells[index].setSource(conflict.other!);
    }
  }

  private merged: { hash: string; before?: string } | null = null;
  private readonly bars: CellBars;
}
