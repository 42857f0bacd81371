// The notebook that the person works in: where they are in it, and what the chat does to it for them.
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { listSelected } from '../presence';
import type { Facts } from '../wire';

const PAUSE = 50;

/** The active editor, which stays the same while the person is in the chat. */
export class ActiveNotebook {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly tracker: INotebookTracker
  ) {
    app.shell.currentChanged?.connect(this.note, this);
    tracker.currentChanged.connect(this.note, this);
    tracker.selectionChanged.connect(this.note, this);
    tracker.activeCellChanged.connect(this.note, this);
    document.addEventListener('focusin', this.onFocus, true);
  }

  /** Says that the person went somewhere else, soon after. */
  readonly moved = new Signal<this, void>(this);

  /** The notebook of the active editor; null if something else is there. */
  get panel(): NotebookPanel | null {
    const current = this.app.shell.currentWidget;
    const found = this.tracker.find(panel => panel === current);
    return found && !found.isDisposed ? found : null;
  }

  /** What a request says about it; a chat in a cell is about that cell. */
  describe(withSelection = true): Facts | null {
    const panel = this.panel;
    if (!panel) {
      return null;
    }
    const { content, context } = panel;
    const active = content.activeCell?.model.id ?? null;
    const isEditing = content.mode === 'edit' || this.left === active;
    return {
      path: context.path,
      selected: withSelection ? listSelected(content) : [],
      editing: withSelection && isEditing ? active : null
    };
  }

  /** The numbers of the selected cells, as a person counts. */
  listSelectedNumbers(): number[] {
    const content = this.panel?.content;
    return content ? listSelected(content).map(id => this.findNumber(this.panel!.context.path, id)!) : [];
  }

  /** The paths of all open notebooks, the active one first. */
  listOpen(): string[] {
    const paths = new Set<string>(this.panel ? [this.panel.context.path] : []);
    this.tracker.forEach(panel => paths.add(panel.context.path));
    return [...paths];
  }

  findPanel(path: string): NotebookPanel | undefined {
    return this.tracker.find(panel => panel.context.path === path);
  }

  /** Which cell it is, counted from 1; undefined if it is not there. */
  findNumber(path: string, id: string): number | undefined {
    const place = this.findPanel(path)?.content.widgets.findIndex(cell => cell.model.id === id) ?? -1;
    return place >= 0 ? place + 1 : undefined;
  }

  /** The id of a cell, by its number. */
  findId(path: string, number: number): string | undefined {
    return this.findPanel(path)?.content.widgets[number - 1]?.model.id;
  }

  /** Scroll to a cell and point at it, without taking the focus. */
  async show(path: string, id: string): Promise<void> {
    const content = this.findPanel(path)?.content;
    const place = content?.widgets.findIndex(each => each.model.id === id) ?? -1;
    if (content && place >= 0) {
      const cell = content.widgets[place];
      // `scrollToCell` would select and activate it: the person may be typing elsewhere.
      await content.scrollToItem(place, 'smart').catch(() => undefined);
      cell.addClass('cw-pointed');
      setTimeout(() => cell.removeClass('cw-pointed'), 2_000);
    }
  }

  /** Go to a cell; the notebook is opened if it is not. */
  async jump(path: string, id: string): Promise<void> {
    if (!this.findPanel(path)) {
      await this.app.commands.execute('docmanager:open', { path });
    }
    const panel = this.findPanel(path);
    if (panel) {
      this.app.shell.activateById(panel.id);
      await panel.context.ready;
      const place = panel.content.widgets.findIndex(cell => cell.model.id === id);
      if (place >= 0) {
        panel.content.activeCellIndex = place;
        await this.show(path, id);
      }
    }
  }

  /** Put a new cell below the active one; an ordinary step that can be undone. */
  insertBelow(source: string, type: 'code' | 'markdown'): void {
    const content = this.panel?.content;
    if (content?.model) {
      const place = content.activeCell ? content.activeCellIndex + 1 : content.widgets.length;
      content.model.sharedModel.insertCell(place, { cell_type: type, source, metadata: {} });
      content.activeCellIndex = place;
    }
  }

  /** Give the active cell another source; an ordinary step that can be undone. */
  replaceActive(source: string): void {
    this.panel?.content.activeCell?.model.sharedModel.setSource(source);
  }

  note(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.moved.emit(), PAUSE);
  }

  /** JupyterLab leaves edit mode when the focus goes to the chat: remember the cell it came from. */
  private readonly onFocus = (event: FocusEvent): void => {
    const target = event.target as Element;
    if (target.closest('.cw-chat')) {
      const from = (event.relatedTarget as Element | null)?.closest?.('.jp-Notebook .cm-editor');
      if (from) {
        this.left = this.panel?.content.activeCell?.model.id ?? null;
        this.note();
      }
    } else if (target.closest('.jp-Notebook')) {
      this.left = null;
      this.note();
    }
  };

  private left: string | null = null;
  private timer = 0;
}
