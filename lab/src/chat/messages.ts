// The turns of a conversation: what the person asked, and what came of it, event by event.
import { Clipboard } from '@jupyterlab/apputils';

import type { Facts } from '../wire';
import { foldText, makeCellLink, QuestionCard, ReviewBar, ToolCard } from './cards';
import type { ChatEvent, Conversation, Turn } from './conversation';
import { button, make } from './dom';
import type { ActiveNotebook } from './editor';
import type { MarkdownView } from './markdown';

/** What views need besides the conversation. */
export type Desk = {
  editor: ActiveNotebook;
  markdown: MarkdownView;
  /** Say that something did not work. */
  report: (error: Error) => void;
  /** The person has seen and accepted edits: the notebook does not ask for it again. */
  accepted: (edits: Facts[]) => void;
};

/** Pieces that come within so many milliseconds are drawn at once. */
const PAUSE = 60;

/** A text that grows, drawn as markdown. */
class TextView {
  constructor(
    private readonly desk: Desk,
    private readonly path: string | null
  ) {}

  readonly node = make('div', { class: 'cw-text jp-RenderedHTMLCommon' });
  text = '';

  add(text: string): void {
    this.text += text;
    this.timer ||= window.setTimeout(() => this.draw(), PAUSE);
  }

  end(): void {
    this.isWhole = true;
    this.timer ||= window.setTimeout(() => this.draw(), 0);
  }

  private async draw(): Promise<void> {
    const text = this.text;
    const isWhole = this.isWhole;
    const drawn = make('div');
    try {
      await this.desk.markdown.draw(drawn, text, isWhole);
    } catch (error) {
      console.warn('Cellwright: an answer is shown as it came:', error);
      drawn.replaceChildren(make('pre', {}, text));
    }
    this.decorate(drawn);
    this.node.replaceChildren(...drawn.childNodes);
    const isNew = text !== this.text || isWhole !== this.isWhole;
    this.timer = isNew ? window.setTimeout(() => this.draw(), PAUSE) : 0;
  }

  private decorate(node: HTMLElement): void {
    for (const pre of node.querySelectorAll('pre')) {
      const block = make('div', { class: 'cw-code' });
      const code = pre.textContent ?? '';
      const language = pre.querySelector('code')?.className.match(/language-(\S+)/)?.[1] ?? '';
      pre.tabIndex = 0;
      pre.replaceWith(block);
      block.append(this.makeTools(code.replace(/\n$/, ''), language), pre);
    }
    for (const table of node.querySelectorAll('table')) {
      const box = make('div', { class: 'cw-table', tabindex: '0', role: 'region', 'aria-label': 'Table' });
      table.replaceWith(box);
      box.append(table);
    }
    if (this.path !== null) {
      this.linkCells(node, this.path);
    }
  }

  private makeTools(code: string, language: string): HTMLElement {
    const { editor } = this.desk;
    const type = /^(?:md|markdown)$/i.test(language) ? 'markdown' : 'code';
    const copy = button('Copy', () => {
      Clipboard.copyToSystem(code); // pages without TLS have no `navigator.clipboard`
      copy.textContent = 'Copied';
      setTimeout(() => (copy.textContent = 'Copy'), 2_000);
    });
    return make(
      'div',
      { class: 'cw-code-tools' },
      make('span', {}, language),
      copy,
      button('Insert below', () => editor.insertBelow(code, type), {
        title: 'As a new cell below the active one'
      }),
      button('Replace cell', () => editor.replaceActive(code), { title: 'The source of the active cell' })
    );
  }

  /** Ids of cells, and words such as "cell 3", become links. */
  private linkCells(node: HTMLElement, path: string): void {
    const { editor } = this.desk;
    for (const code of node.querySelectorAll('code')) {
      const id = code.textContent ?? '';
      if (!code.closest('pre') && editor.findNumber(path, id)) {
        code.replaceWith(makeCellLink(editor, path, id, id));
      }
    }
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const found: Text[] = [];
    while (walker.nextNode()) {
      const text = walker.currentNode as Text;
      if (/\bcell \d/i.test(text.data) && !text.parentElement?.closest('pre, code, a, button')) {
        found.push(text);
      }
    }
    for (const text of found) {
      const parts = text.data.split(/(\bcell \d+\b)/i).map(part => {
        const number = part.match(/^cell (\d+)$/i)?.[1];
        const id = number && editor.findId(path, Number(number));
        return id ? makeCellLink(editor, path, id, part) : part;
      });
      text.replaceWith(...parts);
    }
  }

  private isWhole = false;
  private timer = 0;
}

/** One turn. */
export class TurnView {
  constructor(
    private readonly conversation: Conversation,
    readonly turn: Turn,
    private readonly desk: Desk
  ) {
    this.review = new ReviewBar(desk.editor, {
      undo: cells => conversation.call('undo', { turn: turn.turn, ...(cells ? { cells } : {}) }),
      review: async () => (await conversation.call('review', { turn: turn.turn })).diff
    });
    this.review.draw(null);
    this.node = make('article', { class: 'cw-turn', 'aria-label': `Turn: ${turn.prompt.slice(0, 80)}` });
    this.node.append(this.drawPrompt(), this.about, this.answer, this.state, this.review.node);
    turn.events.forEach(event => this.apply(event));
  }

  readonly node: HTMLElement;

  get isOver(): boolean {
    return this.ending !== null;
  }

  /** The newest question that waits for the person. */
  get question(): QuestionCard | undefined {
    return [...this.questions.values()].at(-1);
  }

  apply(event: ChatEvent): void {
    switch (event.event) {
      case 'asked':
        break;
      case 'begun':
        this.notebook = event.notebook ?? null;
        this.drawBegun(event);
        break;
      case 'text':
        if (!this.text) {
          this.text = new TextView(this.desk, this.notebook);
          this.answer.append(this.text.node);
        }
        this.text.add(event.text);
        break;
      case 'tool_call': {
        this.endText();
        const card = new ToolCard(this.desk.editor, { ...event, notebook: event.notebook ?? this.notebook });
        this.cards.set(event.id, card);
        this.answer.append(card.node);
        break;
      }
      case 'progress':
        this.cards.get(event.call)?.note(event);
        break;
      case 'tool_result':
        this.cards.get(event.id)?.end(event);
        break;
      case 'question': {
        const { question } = event;
        const card = new QuestionCard(event, answer =>
          this.conversation.call('answer', { question, answer })
        );
        this.questions.set(question, card);
        this.answer.append(card.node);
        break;
      }
      case 'answered': {
        const card = this.questions.get(event.question);
        card?.close(event.password ? 'You answered.' : `You answered: ${card.name(event.answer)}`);
        this.questions.delete(event.question);
        break;
      }
      case 'note':
        this.answer.append(make('p', { class: 'cw-note' }, event.text));
        break;
      case 'undone':
      case 'accepted':
        this.review.draw(event.changes);
        break;
      default:
        if (['done', 'failed', 'stopped', 'lost'].includes(event.event)) {
          this.end(event);
        }
    }
  }

  private end(event: ChatEvent): void {
    this.ending = event.event;
    this.endText();
    this.node.removeAttribute('aria-busy');
    this.cards.forEach(card => card.abandon());
    this.questions.forEach(card => card.close('Not answered'));
    this.questions.clear();
    this.review.draw(event.changes ?? null);
    const applied = event.changes?.edits?.length ? ' What it had changed until then stays, see below.' : '';
    const words: { [ending: string]: string } = {
      done: event.ending === 'limit' ? 'It was ended after too many steps.' : '',
      stopped: `Stopped.${applied}`,
      lost: `The server was stopped in the middle of this turn.${applied}${describeUnknown(event.unknown)}`,
      failed: `It failed: ${event.message ?? 'the model did not answer'}.${applied}`
    };
    this.state.replaceChildren();
    if (words[event.event]) {
      this.state.append(make('p', { class: `cw-ending cw-${event.event}` }, words[event.event]));
    }
    if (event.hint) {
      this.state.append(make('p', { class: 'cw-note' }, event.hint));
    }
    const used = showUsage(event.usage);
    if (used) {
      this.state.append(make('p', { class: 'cw-note' }, used));
    }
  }

  private endText(): void {
    this.text?.end();
    this.text = null;
  }

  private drawPrompt(): HTMLElement {
    const { prompt, files, tools } = this.turn;
    const retry = (text?: string): void => {
      const params = { turn: this.turn.turn, ...(text === undefined ? {} : { prompt: text }) };
      this.conversation.call('retry', params).catch(this.desk.report);
    };
    const words = make('div', { class: 'cw-words' }, prompt);
    const chips = [...(files ?? []), ...(tools ?? []).map(tool => `#${tool}`)];
    const shown = make(
      'div',
      { class: 'cw-chips' },
      ...chips.map(each => make('span', { class: 'cw-chip' }, each))
    );
    const edit = button('Edit', () => {
      const field = make('textarea', { 'aria-label': 'Another prompt', rows: '3' });
      field.value = prompt;
      const close = (): void => {
        form.replaceWith(words);
        edit.focus();
      };
      const form = make(
        'form',
        {
          class: 'cw-resend',
          submit: (event: Event) => {
            event.preventDefault();
            close();
            retry(field.value);
          },
          keydown: (event: KeyboardEvent) => {
            if (event.key === 'Escape') {
              close();
            } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              form.requestSubmit();
            }
          }
        },
        field,
        make('button', { type: 'submit', class: 'cw-button cw-main' }, 'Send again'),
        button('Cancel', close)
      );
      words.replaceWith(form);
      field.focus();
    });
    edit.title = 'Ask again with other words; what came after is forgotten, edits stay';
    const again = button('Retry', () => retry(), { title: 'Ask the same again' });
    const actions = make('div', { class: 'cw-prompt-tools' }, edit, again);
    return make('div', { class: 'cw-prompt' }, words, ...(chips.length ? [shown] : []), actions);
  }

  private drawBegun(event: ChatEvent): void {
    const name = (event.notebook ?? '').split('/').at(-1);
    const mode = event.notebook ? `Notebook mode: on (${name})` : 'Notebook mode: off';
    this.about.textContent = `${event.mode[0].toUpperCase()}${event.mode.slice(1)} · ${mode}`;
    this.about.title = event.reason ?? '';
    this.node.setAttribute('aria-busy', 'true');
  }

  private notebook: string | null = null;
  private ending: string | null = null;
  private text: TextView | null = null;
  private readonly cards = new Map<string, ToolCard>();
  private readonly questions = new Map<string, QuestionCard>();
  private readonly review: ReviewBar;
  private readonly about = make('p', { class: 'cw-note' });
  private readonly answer = make('div', { class: 'cw-answer' });
  private readonly state = make('div', { class: 'cw-state' }, make('p', { class: 'cw-note' }, 'Working …'));
}

/** The call that was under way when the server was stopped. */
function describeUnknown(call: Facts | null | undefined): string {
  const what = call && (call.title || call.name);
  return what ? ` It was at “${what}”: that may or may not have been done.` : '';
}

/** What was used, in words; empty if nothing was. */
export function showUsage(usage: Facts | undefined): string {
  if (!usage || !(usage.input || usage.output)) {
    return '';
  }
  const cost = usage.cost === null || usage.cost === undefined ? '' : ` · $${usage.cost.toFixed(4)}`;
  return `${showCount(usage.input)} tokens in, ${showCount(usage.output)} out${cost}`;
}

export function showCount(count: number): string {
  return count < 1000 ? String(count ?? 0) : `${(count / 1000).toFixed(1)}k`;
}

/** A message with the calls and pictures in it. */
function showMessage(message: Facts): string {
  const calls = (message.calls ?? []).map(
    (call: Facts) => `(calls ${call.name} ${JSON.stringify(call.arguments)})`
  );
  const images = message.images ? [`(${message.images} pictures)`] : [];
  return [...(message.text ? [message.text] : []), ...calls, ...images].join('\n');
}

/** What the model would get, to be looked at before anything is sent. */
export function drawPreview(preview: Facts): HTMLElement {
  const messages: Facts[] = preview.messages ?? [];
  const tools: Facts[] = preview.tools ?? [];
  return make(
    'div',
    { class: 'cw-preview' },
    make('p', {}, `About ${showCount(preview.tokens)} tokens, ${tools.length} tools.`),
    make('p', { class: 'cw-note' }, `Prompt files: ${(preview.prompts ?? []).join(', ')}`),
    ...messages.map(each => make('section', {}, make('h3', {}, each.role), foldText(showMessage(each)))),
    ...(tools.length ? [make('h3', {}, 'tools')] : []),
    ...tools.map(tool =>
      make(
        'section',
        {},
        make('p', { class: 'cw-note' }, `${tool.name} (${tool.effect}): ${tool.description}`),
        foldText(JSON.stringify(tool.parameters, null, 1), 'parameters')
      )
    )
  );
}
