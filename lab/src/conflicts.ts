// Cells that the person and another program have both changed: both versions, and a choice.
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';

import { CellBars, makeBar, makeButton, makeText } from './bars';

export type Conflict = { cell: string; current: string | null; other: string | null };

/** Shows conflicts in their cells until the person has chosen; then the file may be saved over. */
export class Conflicts {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly contents: Contents.IManager
  ) {
    // A cell that the person deletes is a choice too.
    this.bars = new CellBars(panel, () => void this.settle());
  }

  /** The cells that are in conflict. */
  get open(): string[] {
    return this.bars.keys();
  }

  /** The notebook has what a file with this hash has: saving does not ask about it. */
  know(hash: string): void {
    const { context } = this.panel;
    // Private in JupyterLab 4: there is no other way to say that a file was read by us.
    (context as any)._updateContentsModel({ ...context.contentsModel, hash });
  }

  /** Show new conflicts; `hash` is that of the file that was merged. */
  async show(hash: string, conflicts: Conflict[]): Promise<void> {
    this.hash = hash;
    for (const conflict of conflicts) {
      this.bars.set(conflict.cell, this.makeBar(conflict));
    }
    await this.settle();
  }

  /** Once nothing is in conflict, take the file as known, so that saving does not ask. */
  private async settle(): Promise<void> {
    const { context } = this.panel;
    if (this.bars.size || !this.hash) {
      return;
    }
    const found = await this.contents.get(context.path, { content: false, hash: true });
    if (found.hash === this.hash) {
      (context as any)._updateContentsModel({ ...context.contentsModel, ...found, content: undefined });
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
    void this.settle();
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

  private hash = '';
  private readonly bars: CellBars;
}
