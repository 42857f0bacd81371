// Cells whose results are stale, marked with the reason.
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CellBars, makeVisible } from './bars';
import type { Facts } from './wire';

const PAUSE = 700;

/** Marks the stale cells of one tab, and looks again when something has changed. */
export class StaleMarks {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly find: () => Promise<Facts>,
    private readonly isOn: () => boolean
  ) {
    this.marks = new CellBars(panel);
    panel.content.model!.contentChanged.connect(this.note, this);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  /** Look again soon. */
  note(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.look(), PAUSE);
  }

  private async look(): Promise<void> {
    const reasons = this.isOn() ? await this.findReasons() : new Map<string, string>();
    if (!reasons || this.panel.isDisposed) {
      return; // the engine cannot be reached: the marks stay as they are
    }
    for (const cell of this.marks.keys()) {
      if (!reasons.has(cell)) {
        this.marks.delete(cell);
      }
    }
    for (const [cell, reason] of reasons) {
      if (this.marks.get(cell)?.title !== reason) {
        this.marks.set(cell, makeMark(reason));
      }
    }
  }

  private async findReasons(): Promise<Map<string, string> | null> {
    try {
      const stale = ((await this.find()).cells as Facts[]).filter(each => each.state === 'stale');
      return new Map(stale.map(each => [each.cell, makeVisible(each.stale_reason ?? 'Its result is stale')]));
    } catch {
      return null;
    }
  }

  private timer = 0;
  private readonly marks: CellBars;
}

function makeMark(reason: string): HTMLElement {
  const mark = document.createElement('div');
  mark.className = 'cw-stale';
  mark.textContent = 'stale';
  mark.title = reason;
  return mark;
}
