// The side panel: conversations, their turns, and the composer.
import { Dialog, showDialog } from '@jupyterlab/apputils';
import { addIcon, deleteIcon, editIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { Facts } from '../wire';
import { Composer } from './composer';
import type { Chats, Conversation, Mode, News } from './conversation';
import { button, iconButton, keepFocus, make, newId } from './dom';
import { type Desk, showUsage, TurnView } from './messages';

/** Whether the notebook scrolls to the cell at work. */
export type Follow = { get: () => boolean; set: (isOn: boolean) => void };

const EXAMPLES: [string, Mode][] = [
  ['#getNotebookCells show all cells', 'ask'],
  ['what does cell 2 do?', 'ask'],
  ['#runNotebookCells run cell 1', 'agent']
];

export class ChatPanel extends Widget {
  constructor(
    private readonly chats: Chats,
    private readonly desk: Desk,
    private readonly follow: Follow
  ) {
    super({ node: make('div', { role: 'region', 'aria-label': 'Cellwright assistant' }) });
    this.id = 'cellwright-chat';
    this.addClass('cw-chat');
    this.composer = new Composer(chats, desk);
    this.composer.takeDrops(this.node);
    const listId = newId('list');
    this.list.id = listId;
    this.opener = button('New conversation', () => void this.toggleList(), {
      class: 'cw-button cw-title',
      'aria-expanded': 'false',
      'aria-controls': listId,
      title: 'All conversations'
    });
    const add = iconButton(addIcon, 'New conversation', () => void this.begin());
    this.following = button('Follow', () => this.setFollow(!follow.get()), {
      title: 'Scroll to the cell at work'
    });
    const head = make('div', { class: 'cw-head', role: 'toolbar', 'aria-label': 'Conversation' });
    head.append(this.opener, add, this.following);
    this.node.append(head, this.list, this.lost, this.log, this.said, this.usage, this.composer.node);
    this.drawFollow();
    this.drawConnection();
    chats.changed.connect(() => this.drawConnection());
    this.log.addEventListener('scroll', () => {
      const { scrollTop, scrollHeight, clientHeight } = this.log;
      this.isAtEnd = scrollHeight - scrollTop - clientHeight < 40;
    });
    new MutationObserver(() => this.keepEnd()).observe(this.log, { childList: true, subtree: true });
    new ResizeObserver(() => this.keepEnd()).observe(this.log); // what is below it grows
  }

  readonly composer: Composer;

  /** Open the conversation that this page showed last, or a new one. */
  async start(): Promise<void> {
    this.starting ??= this.restore().catch(error => {
      this.starting = null;
      this.desk.report(error);
    });
    await this.starting;
  }

  /** Send a prompt about a notebook. */
  async ask(prompt: string, path: string): Promise<void> {
    await this.start();
    this.composer.addFile(path);
    await this.composer.ask(prompt);
  }

  /** Say something that did not work. */
  say(error: Error): void {
    this.composer.say(error.message, (error as any).hint);
  }

  drawFollow(): void {
    this.following.setAttribute('aria-pressed', String(this.follow.get()));
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.start();
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.composer.focus();
  }

  private async restore(): Promise<void> {
    await this.chats.connect();
    const id = this.chats.memory.get('chat');
    const found = id ? await this.chats.enter(id).catch(() => null) : null;
    this.present(found ?? (await this.chats.enter()));
  }

  private async begin(): Promise<void> {
    await this.start();
    await this.go(() => this.chats.enter());
    this.composer.focus();
  }

  /** Leave this conversation for another one. */
  private async go(enter: () => Promise<Conversation>, keepsList = false): Promise<void> {
    try {
      const next = await enter();
      if (this.conversation && this.conversation !== next) {
        this.chats.leave(this.conversation);
      }
      this.present(next);
      if (!keepsList) {
        this.closeList();
      }
    } catch (error) {
      this.say(error as Error);
    }
  }

  private present(conversation: Conversation): void {
    if (this.conversation) {
      this.conversation.changed.disconnect(this.onNews, this);
      this.conversation.deleted.disconnect(this.onDeleted, this);
    }
    this.conversation = conversation;
    this.chats.memory.set('chat', conversation.id);
    conversation.changed.connect(this.onNews, this);
    conversation.deleted.connect(this.onDeleted, this);
    this.composer.set(conversation);
    this.drawAll();
  }

  private onDeleted(): void {
    this.conversation = null;
    void this.go(() => this.chats.enter(), true);
  }

  private onNews(_: unknown, news: News): void {
    if (news.what === 'all') {
      this.drawAll();
    } else if (news.what === 'event') {
      const { turn, event } = news;
      let view = this.views.get(turn.turn);
      if (view) {
        view.apply(event);
      } else {
        view = this.addTurn(turn);
        this.isAtEnd = true;
      }
      this.followCells(event);
      this.announce(event);
    }
    this.drawState();
  }

  private addTurn(turn: TurnView['turn']): TurnView {
    this.empty.remove();
    const view = new TurnView(this.conversation!, turn, this.desk);
    this.views.set(turn.turn, view);
    this.log.append(view.node);
    return view;
  }

  private drawAll(): void {
    this.views.clear();
    keepFocus(this.log, this.log, () => {
      this.log.replaceChildren(this.empty);
      this.conversation?.turns.forEach(turn => this.addTurn(turn));
    });
    this.isAtEnd = true;
    this.drawState();
  }

  private drawState(): void {
    const conversation = this.conversation;
    this.opener.textContent = conversation?.title || 'New conversation';
    // With one turn, its own line says the same.
    this.usage.textContent = this.views.size > 1 ? showUsage(conversation?.usage) : '';
    this.node.classList.toggle('cw-running', conversation?.running !== null);
  }

  private drawConnection(): void {
    this.lost.hidden = this.chats.isOpen || !this.conversation;
    this.lost.textContent =
      'The Jupyter server cannot be reached. What ran there may have been stopped; it is shown when the server is back.';
  }

  /** Say to those who do not see the panel what wants them. */
  private announce(event: Facts): void {
    const words: { [event: string]: string } = {
      question: 'The assistant asks you something.',
      done: 'The assistant has answered.',
      failed: 'The turn failed.',
      stopped: 'The turn was stopped.'
    };
    if (words[event.event]) {
      this.said.textContent = words[event.event];
    }
  }

  private keepEnd(): void {
    if (this.isAtEnd) {
      this.log.scrollTop = this.log.scrollHeight;
    }
  }

  // -- follow -------------------------------------------------------------------------------------

  private setFollow(isOn: boolean): void {
    this.follow.set(isOn);
    this.drawFollow();
  }

  /** Scroll to the cell at work. */
  private followCells(event: Facts): void {
    if (event.event === 'tool_call') {
      this.calls.set(event.id, event.notebook);
    }
    const path = event.event === 'tool_call' ? event.notebook : this.calls.get(event.call);
    const cell =
      event.event === 'tool_call' ? event.cells?.[0] : event.event === 'progress' ? event.cell : null;
    if (path && cell && this.follow.get()) {
      void this.desk.editor.show(path, cell);
    }
  }

  // -- the list of conversations ------------------------------------------------------------------

  private async toggleList(): Promise<void> {
    if (!this.list.hidden) {
      this.closeList();
      return;
    }
    await this.start();
    await this.fillList();
    this.list.hidden = false;
    this.opener.setAttribute('aria-expanded', 'true');
    this.list.querySelector<HTMLElement>('button')?.focus();
  }

  private closeList(): void {
    if (!this.list.hidden) {
      this.list.hidden = true;
      this.opener.setAttribute('aria-expanded', 'false');
      this.opener.focus();
    }
  }

  private async fillList(): Promise<void> {
    try {
      const { chats } = await this.chats.call('list');
      const items = (chats as Facts[]).map(chat => this.drawItem(chat));
      this.list.replaceChildren(
        ...(items.length ? items : [make('li', {}, 'There are no conversations yet.')])
      );
    } catch (error) {
      this.say(error as Error);
    }
  }

  private drawItem(chat: Facts): HTMLElement {
    const isHere = chat.id === this.conversation?.id;
    const title = chat.title || 'Untitled';
    const open = button(title, () => void this.go(() => this.chats.enter(chat.id)), {
      class: 'cw-button cw-open',
      title,
      ...(isHere ? { 'aria-current': 'true' } : {})
    });
    const updated = new Date(chat.updated);
    const isToday = updated.toDateString() === new Date().toDateString();
    const words = isToday
      ? updated.toLocaleTimeString([], { timeStyle: 'short' })
      : updated.toLocaleDateString([], { dateStyle: 'short' });
    const when = make('time', { class: 'cw-note', title: updated.toLocaleString() }, words);
    const item = make('li', {}, open, when);
    const rename = iconButton(editIcon, `Rename ${title}`, () => {
      const field = make('input', { type: 'text', 'aria-label': 'Title' });
      field.value = title;
      let isOver = false;
      const end = async (isKept: boolean): Promise<void> => {
        if (isOver) {
          return;
        }
        isOver = true;
        if (isKept && field.value.trim()) {
          await this.chats
            .call('rename', { id: chat.id, title: field.value.trim() })
            .catch(error => this.say(error));
        }
        await this.fillList();
        this.list.querySelector<HTMLElement>('[aria-current], button')?.focus();
      };
      field.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key === 'Escape') {
          event.stopPropagation();
          void end(event.key === 'Enter');
        }
      });
      field.addEventListener('blur', () => void end(true));
      open.replaceWith(field);
      field.select();
    });
    const remove = iconButton(deleteIcon, `Delete ${title}`, () => void this.remove(chat.id, title));
    item.append(rename, remove);
    return item;
  }

  private async remove(id: string, title: string): Promise<void> {
    const answer = await showDialog({
      title: 'Delete the conversation?',
      body: `${title}: what was said is gone for good. Changes of notebooks stay.`,
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: 'Delete' })]
    });
    if (answer.button.accept) {
      await this.chats.call('delete', { id }).catch(error => this.say(error));
      await this.fillList(); // the server says that it is gone, if it was the one that is shown
      this.list.querySelector<HTMLElement>('button')?.focus();
    }
  }

  private conversation: Conversation | null = null;
  private starting: Promise<void> | null = null;
  private isAtEnd = true;
  private readonly views = new Map<number, TurnView>();
  private readonly calls = new Map<string, string>();
  private readonly opener: HTMLButtonElement;
  private readonly following: HTMLButtonElement;
  private readonly list = make('ul', {
    class: 'cw-list',
    hidden: true,
    'aria-label': 'Conversations',
    keydown: (event: KeyboardEvent) => {
      if (event.key === 'Escape') {
        this.closeList();
      }
    }
  });
  private readonly lost = make('p', { class: 'cw-lost', role: 'alert', hidden: true });
  private readonly log = make('div', {
    class: 'cw-log',
    role: 'log',
    tabindex: '0',
    'aria-label': 'Conversation'
  });
  private readonly said = make('p', { class: 'cw-hidden', role: 'status' });
  private readonly usage = make('p', { class: 'cw-note cw-usage' });
  private readonly empty = make(
    'div',
    { class: 'cw-empty' },
    make('p', {}, 'Attach a notebook with @, then for example:'),
    ...EXAMPLES.map(([text, mode]) =>
      make(
        'p',
        {},
        ...(mode === 'agent' ? ['in Agent mode: '] : []),
        button(text, () => void this.composer.suggest(text, mode), { class: 'cw-link' })
      )
    )
  );
}
