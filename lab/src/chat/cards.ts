// Cards in a turn: what tools did, what the assistant asks the person, and what became of the cells.
import { undoIcon } from '@jupyterlab/ui-components';

import { makeDiff } from '../bars';
import { readUnified } from '../diff';
import type { Facts } from '../wire';
import type { ChatEvent } from './conversation';
import { button, iconButton, keepFocus, make, newId } from './dom';
import type { ActiveNotebook } from './editor';

/** Pictures that a page may show: none of these can hold a script. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
/** More lines than a person reads are folded away. */
const SHORT = 12;

/** A button that goes to a cell; its number is looked up when it is drawn. */
export function makeCellLink(editor: ActiveNotebook, path: string, cell: string, text?: string): HTMLElement {
  const number = editor.findNumber(path, cell);
  const words = text ?? (number ? `cell ${number}` : cell);
  return button(words, () => void editor.jump(path, cell), {
    class: 'cw-link',
    'data-cell': cell,
    title: `Go to the cell in ${path}`
  });
}

/** A call of a tool: running, and later how it went. */
export class ToolCard {
  constructor(
    private readonly editor: ActiveNotebook,
    readonly call: ChatEvent
  ) {
    const title = call.title || call.name;
    this.status = make('span', { class: 'cw-status' }, 'running');
    const head = make('summary', {}, make('span', { class: 'cw-card-title' }, title), ' ', this.status);
    this.details = make('details', {}, head, make('pre', { tabindex: '0' }, showArguments(call.arguments)));
    this.shown = make('div', { class: 'cw-shown' });
    this.link(call.cells);
    this.node = make('div', {
      class: 'cw-card',
      'data-status': 'running',
      role: 'group',
      'aria-label': title
    });
    this.node.append(this.details, this.places, this.shown);
    this.timer = window.setInterval(() => this.count(), 1_000);
  }

  readonly node: HTMLElement;

  /** A cell of the call is at work, or was. */
  note(progress: ChatEvent): void {
    const number = this.editor.findNumber(this.call.notebook ?? '', progress.cell);
    const cell = number ? `cell ${number}` : 'a cell';
    this.what = `${cell} ${progress.status}`;
    this.count();
  }

  end(result: ChatEvent): void {
    this.settle(result.is_error ? 'error' : 'ok', result.is_error ? 'failed' : 'done', result.seconds);
    this.link(result.cells); // a cell that it added, too
    const text: string = result.text ?? '';
    this.details.append(make('pre', { class: 'cw-result', tabindex: '0' }, text));
    this.shown.append(...findTables(text).map(drawTable), ...(result.images ?? []).flatMap(drawPicture));
  }

  /** The turn has ended without a result of this call. */
  abandon(): void {
    if (this.node.dataset.status === 'running') {
      this.settle('stopped', 'stopped');
    }
  }

  private link(cells: string[] | undefined): void {
    for (const cell of cells ?? []) {
      if (!this.linked.has(cell)) {
        this.linked.add(cell);
        this.places.append(makeCellLink(this.editor, this.call.notebook, cell), ' ');
      }
    }
  }

  private settle(status: string, words: string, seconds?: number): void {
    clearInterval(this.timer);
    this.node.dataset.status = status;
    this.status.textContent = seconds === undefined ? words : `${words}, ${showSeconds(seconds)}`;
  }

  private count(): void {
    const seconds = Math.max(0, Date.now() / 1000 - (this.call.started ?? Date.now() / 1000));
    const time = seconds >= 1 ? `, ${Math.floor(seconds)} s` : '';
    this.status.textContent = `${this.what}${time}`;
    if (!this.node.isConnected) {
      clearInterval(this.timer);
    }
  }

  private what = 'running';
  private readonly timer: number;
  private readonly linked = new Set<string>();
  private readonly places = make('div', { class: 'cw-places' });
  private readonly status: HTMLElement;
  private readonly details: HTMLElement;
  private readonly shown: HTMLElement;
}

function showArguments(facts: Facts | undefined): string {
  return Object.entries(facts ?? {})
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

export function showSeconds(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** The tables of markdown in a text: rows of cells. */
export function findTables(text: string): string[][][] {
  const tables: string[][][] = [];
  let rows: string[] = [];
  for (const line of [...text.split('\n'), '']) {
    if (/^\s*\|.*\|\s*$/.test(line)) {
      rows.push(line);
    } else {
      if (rows.length > 1 && /^[\s|:-]+$/.test(rows[1])) {
        tables.push([rows[0], ...rows.slice(2)].map(splitRow));
      }
      rows = [];
    }
  }
  return tables;
}

const splitRow = (line: string): string[] =>
  line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map(each => each.trim().replaceAll('\\|', '|'));

function drawTable([head, ...rows]: string[][]): HTMLElement {
  const draw = (row: string[], tag: 'th' | 'td') => make('tr', {}, ...row.map(each => make(tag, {}, each)));
  const body = make('tbody', {}, ...rows.map(row => draw(row, 'td')));
  const table = make('table', {}, make('thead', {}, draw(head, 'th')), body);
  return make('div', { class: 'cw-table', tabindex: '0', role: 'region', 'aria-label': 'Table' }, table);
}

function drawPicture(image: Facts): HTMLElement[] {
  if (!PICTURES.test(image.mime) || typeof image.data !== 'string' || !BASE64.test(image.data)) {
    return [make('span', {}, `(a picture: ${image.mime})`)];
  }
  return [make('img', { src: `data:${image.mime};base64,${image.data}`, alt: 'Output of the cell' })];
}

/** A question that waits for the person. */
export class QuestionCard {
  constructor(
    readonly question: ChatEvent,
    answer: (text: string) => Promise<unknown>
  ) {
    const label = newId('question');
    const isInput = question.kind === 'input';
    this.node = make('div', {
      class: 'cw-card cw-question',
      role: 'group',
      'aria-labelledby': label,
      tabindex: '-1'
    });
    this.node.append(make('p', { id: label }, question.words || 'The cell wants an input'));
    if (question.preview) {
      this.node.append(make('pre', { tabindex: '0' }, question.preview));
    }
    const send = (text: string): void => {
      keepFocus(this.node, this.node, () =>
        this.actions.querySelectorAll('button, input').forEach(each => each.setAttribute('disabled', ''))
      );
      answer(text).catch(error => {
        this.actions.querySelectorAll('button, input').forEach(each => each.removeAttribute('disabled'));
        this.note.textContent = error.message;
      });
    };
    if (isInput) {
      const field = make('input', {
        type: question.password ? 'password' : 'text',
        autocomplete: 'off',
        'aria-label': question.words || 'Input for the cell'
      });
      const form = make('form', {
        submit: (event: Event) => {
          event.preventDefault();
          const text = field.value;
          field.value = '';
          send(text);
        }
      });
      form.append(field, make('button', { type: 'submit', class: 'cw-button cw-main' }, 'Answer'));
      this.actions.append(form);
    } else {
      const options: Facts[] = question.options ?? [];
      this.actions.append(
        ...options.map((option, index) =>
          button(option.title, () => send(option.value), index ? {} : { class: 'cw-button cw-main' })
        )
      );
    }
    this.node.append(this.actions, this.note);
  }

  readonly node: HTMLElement;

  close(words: string): void {
    keepFocus(this.node, this.node, () => this.actions.remove());
    this.node.classList.remove('cw-question');
    this.note.textContent = words;
  }

  /** What a person chose, in the words of the button. */
  name(answer: unknown): string {
    const options: Facts[] = this.question.options ?? [];
    return options.find(option => option.value === answer)?.title ?? String(answer ?? '');
  }

  private readonly actions = make('div', { class: 'cw-actions' });
  private readonly note = make('p', { class: 'cw-note', role: 'status' });
}

export type ReviewActions = {
  undo: (cells?: string[]) => Promise<unknown>;
  review: () => Promise<string>;
};

/** What a turn changed: go there, see it, take it back. */
export class ReviewBar {
  constructor(
    private readonly editor: ActiveNotebook,
    private readonly actions: ReviewActions
  ) {}

  readonly node = make('div', {
    class: 'cw-review-bar',
    role: 'group',
    'aria-label': 'Changes of this turn',
    tabindex: '-1'
  });

  draw(changes: Facts | null): void {
    keepFocus(this.node, this.node, () => this.drawNow(changes));
  }

  private drawNow(changes: Facts | null): void {
    const edits: Facts[] = changes?.edits ?? [];
    this.node.replaceChildren();
    this.node.hidden = !edits.length;
    if (!edits.length) {
      return;
    }
    const left = edits.filter(edit => !edit.undone);
    const places = new Map<string, [string, string]>();
    for (const edit of left) {
      edit.cells.forEach((cell: string) => places.set(`${edit.path}\n${cell}`, [edit.path, cell]));
    }
    if (!left.length) {
      this.node.append(make('span', {}, 'The changes of this turn were undone.'));
      return;
    }
    const links = [...places.values()].map(([path, cell]) => this.drawPlace(path, cell, places.size > 1));
    const others = left.filter(edit => !edit.cells.length).map(edit => edit.path);
    const files = [...new Set(others)].map(path => make('span', { class: 'cw-place' }, path));
    this.node.append(
      make('span', {}, left.length < edits.length ? 'Still changed:' : 'Changed:'),
      ...links,
      ...files,
      button('Diff', () => void this.toggleDiff()),
      button('Undo', () => this.run(this.actions.undo()), { title: 'Take back all changes of this turn' }),
      this.note
    );
  }

  private drawPlace(path: string, cell: string, hasUndo: boolean): HTMLElement {
    const undo = () => this.run(this.actions.undo([cell]));
    const link = makeCellLink(this.editor, path, cell);
    const label = `Undo the change of ${link.textContent}`;
    return make('span', { class: 'cw-place' }, link, ...(hasUndo ? [iconButton(undoIcon, label, undo)] : []));
  }

  private async toggleDiff(): Promise<void> {
    const shown = this.node.querySelector('.cw-diff');
    if (shown) {
      shown.remove();
      return;
    }
    try {
      this.node.append(makeDiff(readUnified(await this.actions.review())));
    } catch (error) {
      this.note.textContent = (error as Error).message;
    }
  }

  private run(doing: Promise<unknown>): void {
    this.note.textContent = '';
    doing.catch(error => (this.note.textContent = `Not undone: ${error.message}`));
  }

  private readonly note = make('span', { class: 'cw-note', role: 'status' });
}

/** A text that is folded if it is long, or under a name. */
export function foldText(text: string, name = ''): HTMLElement {
  const pre = make('pre', { tabindex: '0' }, text);
  const lines = text.split('\n');
  if (lines.length <= SHORT && !name) {
    return pre;
  }
  const title = name || `${lines[0].slice(0, 80)} … ${lines.length} lines`;
  return make('details', {}, make('summary', {}, title), pre);
}
