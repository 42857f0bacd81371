// Cells that the person and another program have both changed: both versions, and a choice.
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';

export type Conflict = { cell: string; current: string | null; other: string | null };

/** Shows conflicts in their cells until the person has chosen; then the file may be saved over. */
export class Conflicts {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly contents: Contents.IManager
  ) {}

  get size(): number {
    return this.open.size;
  }

  keys(): Iterable<string> {
    return this.open.keys();
  }

  /** Show new conflicts; `hash` is that of the file that was merged. */
  async show(hash: string, conflicts: Conflict[]): Promise<void> {
    this.hash = hash;
    for (const conflict of conflicts) {
      this.open.get(conflict.cell)?.remove();
      const widget = this.panel.content.widgets.find(each => each.model.id === conflict.cell);
      if (widget) {
        this.open.set(conflict.cell, this.addBar(widget, conflict));
      }
    }
    await this.settle();
  }

  /** Once nothing is in conflict, take the file as known, so that saving does not ask. */
  private async settle(): Promise<void> {
    const { context } = this.panel;
    if (this.open.size) {
      return;
    }
    const found = await this.contents.get(context.path, { content: false, hash: true });
    if (found.hash === this.hash) {
      // Private in JupyterLab 4: there is no other way to say that a file was read by us.
      (context as any)._updateContentsModel({ ...context.contentsModel, ...found, content: undefined });
    }
  }

  private addBar(widget: Cell, conflict: Conflict): HTMLElement {
    const bar = document.createElement('div');
    bar.className = 'cw-conflict';
    const text = document.createElement('pre');
    text.textContent =
      conflict.other === null ? 'Another program deleted this cell.' : conflict.other;
    const label = document.createElement('span');
    label.textContent = 'Changed here and in the file. The file has:';
    bar.append(
      label,
      this.addButton('Keep mine', widget, () => undefined),
      this.addButton('Take the file’s', widget, () => this.take(widget, conflict)),
      text
    );
    widget.node.append(bar);
    return bar;
  }

  private addButton(text: string, widget: Cell, act: () => void): HTMLElement {
    const button = document.createElement('button');
    button.textContent = text;
    button.onclick = () => {
      act();
      this.open.get(widget.model.id)?.remove();
      this.open.delete(widget.model.id);
      void this.settle();
    };
    return button;
  }

  private take(widget: Cell, conflict: Conflict): void {
    const notebook = this.panel.content.model!.sharedModel;
    if (conflict.other === null) {
      notebook.deleteCell(notebook.cells.findIndex(cell => cell.id === widget.model.id));
    } else {
      widget.model.sharedModel.setSource(conflict.other);
    }
  }

  private hash = '';
  private readonly open = new Map<string, HTMLElement>();
}
