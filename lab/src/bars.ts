// Bars beside cells, and above the notebook. What others wrote is only ever shown as text.
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';

import type { DiffLine } from './diff';

/** Bars by cell id; they follow their cells, and go with them. */
export class CellBars {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly onGone: () => void = () => undefined
  ) {
    panel.content.model!.cells.changed.connect(this.schedule, this);
  }

  get size(): number {
    return this.bars.size;
  }

  keys(): string[] {
    return [...this.bars.keys()];
  }

  get(cell: string): HTMLElement | undefined {
    return this.bars.get(cell);
  }

  set(cell: string, bar: HTMLElement): void {
    this.delete(cell);
    this.bars.set(cell, bar);
    this.place();
  }

  delete(cell: string): void {
    this.bars.get(cell)?.remove();
    this.bars.delete(cell);
  }

  clear(): void {
    this.keys().forEach(cell => this.delete(cell));
  }

  /** A cell that is moved is taken out and put in again: look after both. */
  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.place(), 0);
  }

  private place(): void {
    if (this.panel.isDisposed) {
      return;
    }
    const widgets = new Map(this.panel.content.widgets.map(each => [each.model.id, each]));
    let isGone = false;
    for (const [cell, bar] of this.bars) {
      const node = widgets.get(cell)?.node;
      if (!node) {
        this.delete(cell);
        isGone = true;
      } else if (bar.parentNode !== node) {
        node.append(bar);
      }
    }
    if (isGone) {
      this.onGone();
    }
  }

  private timer = 0;
  private readonly bars = new Map<string, HTMLElement>();
}

/** Make a bar that says something, with buttons. */
export function makeBar(kind: string, label: string, ...more: HTMLElement[]): HTMLElement {
  const bar = document.createElement('div');
  bar.className = `cw-bar ${kind}`;
  bar.append(makeText('span', label), ...more);
  return bar;
}

export function makeText(tag: 'span' | 'pre', text: string): HTMLElement {
  const node = document.createElement(tag);
  node.textContent = text;
  return node;
}

export function makeButton(text: string, act: () => void): HTMLElement {
  const button = document.createElement('button');
  button.textContent = text;
  button.onclick = act;
  return button;
}

/** Show a bar above the notebook; returns what takes it away. */
export function addHeader(panel: NotebookPanel, bar: HTMLElement): () => void {
  const widget = new Widget({ node: bar });
  panel.contentHeader.addWidget(widget);
  return () => widget.dispose();
}

/** Show lines of a difference. */
export function makeDiff(lines: DiffLine[]): HTMLElement {
  const diff = document.createElement('pre');
  diff.className = 'cw-diff';
  diff.tabIndex = 0;
  for (const { sign, text } of lines) {
    const line = makeText('span', `${sign} ${text}\n`);
    line.className = sign === '+' ? 'cw-plus' : sign === '-' ? 'cw-minus' : '';
    diff.append(line);
  }
  return diff;
}
