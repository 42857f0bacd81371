// Where a person is in a notebook: active cell, selection, mode, focus.
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';

import type { Facts } from './wire';

const PAUSE = 50;

/** The views of one notebook in a page, and the one where the person is. */
export type Views = { list: () => NotebookPanel[]; current: () => NotebookPanel | null };

/** Calls `tell` whenever the person goes somewhere else in a notebook, soon after. */
export class PresenceWatcher {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly views: Views,
    private readonly life: () => string | null,
    private readonly saved: () => Facts | null,
    private readonly tell: (facts: Facts) => void
  ) {
    const { context, sessionContext } = panel;
    views.list().forEach(view => this.watch(view));
    context.model.stateChanged.connect(this.note, this);
    sessionContext.kernelChanged.connect(this.noteNow, this);
    sessionContext.statusChanged.connect(this.note, this);
    context.saveState.connect(this.noteSave, this);
    window.addEventListener('focus', this.onFocus);
    window.addEventListener('blur', this.onFocus);
  }

  dispose(): void {
    const { context, sessionContext } = this.panel;
    for (const { content } of this.views.list()) {
      content.activeCellChanged.disconnect(this.note, this);
      content.selectionChanged.disconnect(this.note, this);
      content.stateChanged.disconnect(this.note, this);
    }
    context.model.stateChanged.disconnect(this.note, this);
    sessionContext.kernelChanged.disconnect(this.noteNow, this);
    sessionContext.statusChanged.disconnect(this.note, this);
    context.saveState.disconnect(this.noteSave, this);
    window.removeEventListener('focus', this.onFocus);
    window.removeEventListener('blur', this.onFocus);
    clearTimeout(this.timer);
  }

  /** Look where the person is in another view, too. */
  watch({ content }: NotebookPanel): void {
    content.activeCellChanged.connect(this.note, this);
    content.selectionChanged.connect(this.note, this);
    content.stateChanged.connect(this.note, this);
  }

  describe(): Facts {
    const current = this.views.current();
    const { content, context, sessionContext } = current ?? this.panel;
    const kernel = sessionContext.session?.kernel;
    return {
      active: content.activeCell?.model.id ?? null,
      selected: listSelected(content),
      mode: content.mode,
      focused: current !== null && document.hasFocus(),
      dirty: context.model.dirty,
      kernel: kernel ? { id: kernel.id, life: this.life() } : null
    };
  }

  note(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.tell(this.describe()), PAUSE);
  }

  /** Tell at once that there is another kernel, or none: an agent may run a cell right then. */
  private noteNow(): void {
    this.tell(this.describe());
  }

  /** Tell at once what was saved: from then on editor and file agree. */
  private noteSave(_: unknown, state: string): void {
    if (state === 'completed') {
      this.tell({ ...this.describe(), saved: true, news: this.saved() });
    }
  }

  private readonly onFocus = () => this.note();
  private timer = 0;
}

export function listSelected(content: Notebook): string[] {
  return content.widgets.filter(cell => content.isSelectedOrActive(cell)).map(cell => cell.model.id);
}
