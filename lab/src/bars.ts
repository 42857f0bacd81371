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
    if (this.bars.size) {
      this.timer = window.setTimeout(() => this.place(), 0);
    }
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
  node.textContent = makeVisible(text);
  return node;
}

// Controls but tab and newline, marks that turn the order of letters round, characters without a
// width, fillers, tags, private use, and halves of characters.
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
// Joiners that belong to an emoji or to letters of scripts that need them.
const JOINER = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\u0600-\u0fff\u1780-\u18af#*0-9]$/u;

/** The text with everything visible that was hidden, so that no name and no source looks like another. */
export function makeVisible(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(HIDDEN, (hidden, place: number, whole: string) => {
    const isJoiner = '\u200c\u200d\ufe0e\ufe0f'.includes(hidden);
    if (isJoiner && JOINER.test(whole.slice(Math.max(0, place - 2), place))) {
      return hidden;
    }
    return `<U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}>`;
  });
}

export function makeButton(text: string, act: () => void): HTMLElement {
  const button = document.createElement('button');
  button.textContent = text;
  button.onclick = act;
  return button;
}

/** Show a bar above the notebook; returns what takes it away. */
export function addHeader(panel: NotebookPanel, bar: HTMLElement): () => void {
  let place = places.get(panel);
  if (!place) {
    place = new Widget();
    place.addClass('cw-headers');
    places.set(panel, place);
    panel.contentHeader.addWidget(place);
  }
  const { node } = place;
  const fit = () => {
    const height = `${Math.min(node.childElementCount, MOST_HEADERS) * HEADER}px`;
    if (node.style.minHeight !== height) {
      node.style.minHeight = height;
      panel.contentHeader.fit(); // JupyterLab lays out by the least heights
    }
  };
  node.append(bar);
  fit();
  node.scrollTop = node.scrollHeight;
  return () => {
    bar.remove();
    fit();
  };
}

/** However many bars there are, the notebook needs its room: the others are seen by scrolling. */
const MOST_HEADERS = 4;
const HEADER = 28; // pixels
const places = new WeakMap<NotebookPanel, Widget>();

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
