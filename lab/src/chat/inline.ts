// A chat in a cell: a prompt in place, a proposal as a diff, and a choice.
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CellBars, makeDiff } from '../bars';
import { diffLines } from '../diff';
import type { ChatEvent, Chats, Conversation, News } from './conversation';
import { button, keepFocus, make } from './dom';
import type { Desk } from './messages';
import { showUsage } from './messages';

/** The last block of code in an answer that may still grow; null before it begins. */
export function findBlock(text: string): string | null {
  const open = /(?:^|\n)(`{3,}|~{3,})[^\n`]*\n/g;
  let found: string | null = null;
  for (let match = open.exec(text); match; match = open.exec(text)) {
    const start = open.lastIndex;
    const close = new RegExp(`(?:^|\\n)${match[1]}[ \\t]*(?:\\n|$)`);
    const rest = text.slice(start);
    const end = close.exec(rest);
    found = end ? rest.slice(0, end.index) : rest.replace(/\n$/, ''); // no line before it has a letter
    open.lastIndex = end ? start + end.index + end[0].length - (end[0].endsWith('\n') ? 1 : 0) : text.length;
  }
  return found;
}

/** The chats in the cells of one notebook; a cell has one at most. */
export class CellChats {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly chats: Chats,
    private readonly desk: Desk
  ) {
    this.bars = new CellBars(panel, () => this.sweep());
  }

  /** Open a chat in a cell, or go to the one that is there; a prompt is sent at once. */
  open(cell: Cell, prompt = ''): void {
    const id = cell.model.id;
    let chat = this.open_.get(id);
    if (!chat) {
      chat = new CellChat(this.panel, cell, this.chats, this.desk, () => this.close(id));
      this.open_.set(id, chat);
      this.bars.set(id, chat.node);
    }
    chat.focus();
    if (prompt) {
      void chat.ask(prompt);
    }
  }

  private close(id: string): void {
    this.open_.delete(id);
    this.bars.delete(id);
    const place = this.panel.content.widgets.findIndex(cell => cell.model.id === id);
    if (place >= 0) {
      this.panel.content.activeCellIndex = place;
      this.panel.activate();
    }
  }

  private sweep(): void {
    for (const [id, chat] of this.open_) {
      if (!this.bars.get(id)) {
        this.open_.delete(id);
        chat.leave();
      }
    }
  }

  private readonly open_ = new Map<string, CellChat>();
  private readonly bars: CellBars;
}

class CellChat {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly cell: Cell,
    private readonly chats: Chats,
    private readonly desk: Desk,
    private readonly close: () => void
  ) {
    this.accept = button('Accept', () => void this.take(), { class: 'cw-button cw-main' });
    this.reject = button('Reject', () => this.leave());
    this.stop = button('Stop', () => void this.conversation?.call('stop').catch(this.report));
    this.send = make('button', { type: 'submit', class: 'cw-button' }, 'Send');
    const leave = button('Close', () => this.leave(), { title: 'Escape' });
    const form = make(
      'form',
      {
        class: 'cw-row',
        submit: (event: Event) => {
          event.preventDefault();
          void this.ask(this.field.value);
        }
      },
      this.field,
      this.send,
      this.stop,
      leave
    );
    this.node = make(
      'div',
      {
        class: 'cw-bar cw-inline',
        role: 'group',
        'aria-label': 'Chat in this cell',
        // The keys of the notebook are not meant for it: D D would delete the cell.
        'data-lm-suppress-shortcuts': 'true',
        keydown: (event: KeyboardEvent) => {
          event.stopPropagation();
          if (event.key === 'Escape') {
            event.preventDefault();
            this.leave();
          }
        }
      },
      form,
      this.words,
      this.proposal,
      make('div', { class: 'cw-actions' }, this.accept, this.reject),
      this.note
    );
    // A press in the bar is none in the cell.
    ['mousedown', 'mouseup', 'dblclick'].forEach(name => this.node.addEventListener(name, stopEvent));
    this.field.addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        void this.ask(this.field.value);
      }
    });
    this.draw();
  }

  readonly node: HTMLElement;

  focus(): void {
    this.field.focus();
  }

  /** Ask for a new source of the cell, or for another one than the one that is shown. */
  async ask(prompt: string): Promise<void> {
    if (!prompt.trim() || this.isRunning) {
      return;
    }
    this.field.value = '';
    this.text = '';
    this.turn = null;
    this.proposed = null;
    this.isRunning = true;
    this.say('Working …');
    this.draw();
    try {
      await this.chats.connect();
      this.conversation ??= await this.enter();
      const id = this.cell.model.id;
      const editor = { path: this.panel.context.path, selected: [id], editing: id };
      await this.conversation.call('send', { prompt, editor, files: [], tools: [], cell: id });
    } catch (error) {
      this.isRunning = false;
      this.report(error as Error);
      this.draw();
    }
  }

  /** Close it. A proposal that was not accepted is gone, and so is the conversation about it. */
  leave(): void {
    const conversation = this.conversation;
    this.conversation = null;
    conversation?.changed.disconnect(this.onNews, this);
    if (conversation && this.isRunning) {
      conversation.call('stop').catch(() => undefined);
    }
    if (conversation && !this.isAccepted) {
      conversation.call('delete').catch(() => undefined);
    } else if (conversation) {
      this.chats.leave(conversation);
    }
    this.close();
  }

  private async enter(): Promise<Conversation> {
    const conversation = await this.chats.enter();
    conversation.changed.connect(this.onNews, this);
    return conversation;
  }

  private async take(): Promise<void> {
    try {
      const { changes } = await this.conversation!.call('accept', { turn: this.turn });
      this.isAccepted = true;
      this.desk.accepted(changes.edits);
      this.leave();
    } catch (error) {
      this.report(error as Error);
    }
  }

  private onNews(_: unknown, news: News): void {
    if (news.what === 'event') {
      this.hear(news.turn.turn, news.event);
    } else if (news.what === 'all' && this.isRunning) {
      // The connection broke: what was said meanwhile is in the last turn.
      const last = this.conversation?.turns.at(-1);
      this.text = '';
      last?.events.forEach(event => this.hear(last.turn, event));
    }
  }

  private hear(turn: number, event: ChatEvent): void {
    this.turn = turn;
    if (event.event === 'text') {
      this.text += event.text;
    } else if (event.event === 'done') {
      this.isRunning = false;
      this.proposed = event.proposal?.source ?? null;
      const used = showUsage(event.usage);
      this.say(this.proposed === null ? `Nothing is proposed for this cell.${this.lack()}` : used);
    } else if (['failed', 'stopped', 'lost'].includes(event.event)) {
      this.isRunning = false;
      const words = { stopped: 'Stopped.', lost: 'The server was stopped.' }[event.event as string];
      this.say(words ?? `It failed: ${event.message}${event.hint ? `. ${event.hint}` : ''}`);
    }
    this.draw();
  }

  /** How to get a language model, for those who have none. */
  private lack(): string {
    const isBuiltIn = this.conversation?.model === 'direct';
    return isBuiltIn ? ' That takes a language model: choose one in the panel (Ctrl Alt J).' : '';
  }

  private draw(): void {
    const source = this.proposed ?? findBlock(this.text);
    this.proposal.replaceChildren();
    if (source !== null) {
      this.proposal.append(makeDiff(diffLines(this.cell.model.sharedModel.getSource(), source)));
    }
    const isOver = !this.isRunning;
    keepFocus(this.node, this.field, () => {
      this.accept.hidden = !(isOver && this.proposed !== null);
      this.reject.hidden = this.accept.hidden;
      this.stop.hidden = isOver;
      this.send.hidden = !isOver;
    });
    this.send.textContent = this.proposed === null ? 'Send' : 'Refine';
    this.field.placeholder =
      this.proposed === null ? 'What should become of this cell?' : 'What should be different?';
    const words = this.text.split(/\n?(?:`{3,}|~{3,})/)[0].trim();
    this.words.hidden = !words;
    if (isOver && words !== this.drawn) {
      this.drawn = words;
      void this.desk.markdown.draw(this.words, words, true);
    } else if (!isOver) {
      this.drawn = '';
      this.words.replaceChildren(make('p', {}, words));
    }
  }

  private say(text: string): void {
    this.note.textContent = text;
  }

  private readonly report = (error: Error): void => {
    const hint = (error as any).hint;
    this.say(hint ? `${error.message}. ${hint}` : error.message);
  };

  private conversation: Conversation | null = null;
  private turn: number | null = null;
  private text = '';
  private drawn = '';
  private proposed: string | null = null;
  private isRunning = false;
  private isAccepted = false;
  private readonly field = make('textarea', { rows: '1', 'aria-label': 'What should become of this cell' });
  private readonly words = make('div', { class: 'cw-text jp-RenderedHTMLCommon' });
  private readonly proposal = make('div', { class: 'cw-proposal', 'aria-label': 'Proposal', role: 'group' });
  private readonly note = make('p', { class: 'cw-note', role: 'status' });
  private readonly accept: HTMLButtonElement;
  private readonly reject: HTMLButtonElement;
  private readonly stop: HTMLButtonElement;
  private readonly send: HTMLButtonElement;
}

const stopEvent = (event: Event): void => event.stopPropagation();
