// Chats of the server, as this page knows them: what was said so far, and what comes.
import { Signal } from '@lumino/signaling';

import { EngineError, Facts, Wire } from '../wire';

export type Mode = 'ask' | 'edit' | 'agent';
export type ChatEvent = Facts & { event: string };
export type Turn = {
  turn: number;
  prompt: string;
  files: string[];
  tools: string[];
  cell: string | null;
  events: ChatEvent[];
};
/** What is new: a whole redraw, or one event of a turn. */
export type News = { what: 'all' | 'state' } | { what: 'event'; turn: Turn; event: ChatEvent };

/** One conversation; events that it knows already are left out. */
export class Conversation {
  constructor(
    readonly id: string,
    private readonly chats: Chats
  ) {}

  title = '';
  mode: Mode = 'ask';
  model = '';
  usage: Facts = {};
  turns: Turn[] = [];
  running: number | null = null;
  readonly changed = new Signal<this, News>(this);
  readonly deleted = new Signal<this, void>(this);

  /** Ask the server something about this conversation. */
  call(method: string, params: Facts = {}): Promise<any> {
    return this.chats.call(method, { id: this.id, ...params });
  }

  /** Take all that the server has of it. */
  restore(snapshot: Facts): void {
    this.takeState(snapshot);
    this.turns = snapshot.turns;
    this.last = snapshot.n;
    this.changed.emit({ what: 'all' });
  }

  takeState(state: Facts): void {
    this.title = state.title;
    this.mode = state.mode;
    this.model = state.model;
    this.usage = state.usage ?? {};
    this.running = state.running ?? null;
    this.changed.emit({ what: 'state' });
  }

  take(n: number, number: number | null, event: ChatEvent): void {
    if (n <= this.last) {
      return;
    }
    if (n > this.last + 1) {
      void this.chats.reopen(this); // something was missed
      return;
    }
    this.last = n;
    if (event.event === 'asked' && number !== null) {
      this.begin(number, event);
      return;
    }
    const turn = this.turns.find(each => each.turn === number);
    if (turn) {
      turn.events.push(event);
      this.changed.emit({ what: 'event', turn, event });
    }
  }

  private begin(number: number, event: ChatEvent): void {
    const { prompt, files, tools, cell } = event;
    const gone: number[] = event.replaces ?? [];
    const left = this.turns.filter(each => !gone.includes(each.turn));
    const isCut = left.length < this.turns.length;
    const turn = { turn: number, prompt, files, tools, cell: cell ?? null, events: [event] };
    this.turns = [...left, turn];
    this.changed.emit(isCut ? { what: 'all' } : { what: 'event', turn, event });
  }

  private last = 0;
}

/** What pages remember: the conversation that is shown, and the model that was chosen. */
export type Memory = {
  get: (what: 'chat' | 'model') => string | null;
  set: (what: 'chat' | 'model', value: string) => void;
};

/** All chats of this page, over one connection. */
export class Chats {
  constructor(
    private readonly wire: Wire,
    readonly memory: Memory
  ) {
    wire.changed.connect((_, isOpen) => {
      if (isOpen) {
        this.open.forEach(conversation => void this.reopen(conversation));
      }
      this.changed.emit(isOpen);
    });
  }

  /** Says whether the server can be reached now. */
  readonly changed = new Signal<this, boolean>(this);

  get isOpen(): boolean {
    return this.wire.isOpen;
  }

  /** Connect, if that was not done yet; over when the server was reached. */
  connect(): Promise<void> {
    this.connecting ??= new Promise(resolve => {
      this.wire.changed.connect((_, isOpen) => isOpen && resolve());
      this.wire.connect();
    });
    return this.connecting;
  }

  call(method: string, params: Facts = {}): Promise<any> {
    return this.wire.call(`chat.${method}`, params);
  }

  /** Open a conversation, or begin one with the model that was chosen last, in any page. */
  async enter(id?: string): Promise<Conversation> {
    const snapshot = await this.call('open', id ? { id } : {});
    const conversation = this.open.get(snapshot.id) ?? new Conversation(snapshot.id, this);
    this.open.set(conversation.id, conversation);
    conversation.restore(snapshot);
    const model = this.memory.get('model');
    if (!id && model && model !== conversation.model) {
      // A model that lost its key or its server is not worth a word: the list shows the one in use.
      await conversation.call('set', { model }).catch(() => undefined);
    }
    return conversation;
  }

  /** Hear no more of a conversation; it goes on without this page. */
  leave(conversation: Conversation): void {
    this.open.delete(conversation.id);
    this.call('leave', { id: conversation.id }).catch(() => undefined);
  }

  async reopen(conversation: Conversation): Promise<void> {
    try {
      conversation.restore(await this.call('open', { id: conversation.id }));
    } catch (error) {
      // A chat that a terminal works in is there, but cannot be shown now.
      const { code } = error as EngineError;
      if (this.isOpen && code !== 'ENGINE_LOST' && code !== 'CHAT_BUSY') {
        this.drop(conversation.id);
      }
    }
  }

  /** What the server says by itself. */
  async hear(method: string, params: Facts): Promise<Facts> {
    const conversation = this.open.get(params.chat);
    if (method === 'chat.event') {
      conversation?.take(params.n, params.turn, params.event);
    } else if (method === 'chat.state') {
      conversation?.takeState(params);
    } else if (method === 'chat.deleted') {
      this.drop(params.chat);
    }
    return {};
  }

  private drop(id: string): void {
    const conversation = this.open.get(id);
    this.open.delete(id);
    conversation?.deleted.emit();
  }

  private connecting: Promise<void> | null = null;
  private readonly open = new Map<string, Conversation>();
}
