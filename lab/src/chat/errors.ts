// After a cell has failed: quiet offers to explain the error or to fix the cell.
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CellBars } from '../bars';
import { button, make } from './dom';

export type ErrorActions = {
  /** A setting of the person. */
  isOn: () => boolean;
  explain: (cell: Cell, error: string) => void;
  fix: (cell: Cell, error: string) => void;
};

const PAUSE = 300;

/** Offers at the cells of one notebook that ended with an error. */
export class ErrorOffers {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly actions: ErrorActions
  ) {
    this.bars = new CellBars(panel);
    panel.content.model!.contentChanged.connect(this.note, this);
    panel.disposed.connect(() => clearTimeout(this.timer));
    this.note();
  }

  note(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.draw(), PAUSE);
  }

  private draw(): void {
    for (const cell of this.panel.isDisposed ? [] : this.panel.content.widgets) {
      const id = cell.model.id;
      const error = this.actions.isOn() ? findError(cell) : null;
      if (error === null) {
        this.bars.delete(id);
      } else if (!this.bars.get(id)) {
        this.bars.set(id, this.makeBar(cell));
      }
    }
  }

  private makeBar(cell: Cell): HTMLElement {
    const act = (what: 'explain' | 'fix') => (): void => this.actions[what](cell, findError(cell) ?? '');
    return make(
      'div',
      {
        class: 'cw-offer',
        role: 'group',
        'aria-label': 'Help with this error',
        'data-lm-suppress-shortcuts': 'true'
      },
      button('Explain', act('explain')),
      button('Fix', act('fix'))
    );
  }

  private timer = 0;
  private readonly bars: CellBars;
}

/** The error that a cell ended with, in one line; null if there is none. */
function findError(cell: Cell): string | null {
  if (cell.model.type !== 'code') {
    return null;
  }
  const { outputs } = cell.model as ICodeCellModel;
  for (let index = outputs.length - 1; index >= 0; index--) {
    const output = outputs.get(index);
    if (output.type === 'error') {
      const { ename, evalue } = output.toJSON() as { ename: string; evalue: string };
      return `${ename}: ${evalue}`.split('\n')[0].slice(0, 200);
    }
  }
  return null;
}
