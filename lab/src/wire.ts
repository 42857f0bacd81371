// JSON-RPC with the engine, or with the chats of the server, over a WebSocket of our server extension.
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

export type Facts = { [name: string]: any };
export type Answer = (method: string, params: Facts) => Promise<Facts>;

/** What the engine refused, or is refused, and why. */
export class EngineError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null
  ) {
    super(message);
  }
}

type Call = {
  resolve: (result: any) => void;
  reject: (reason: Error) => void;
  onEvent?: (facts: Facts) => void;
};

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

/** One connection, made anew when it breaks. `answer` gets requests, and notices that want no answer. */
export class Wire {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly answer: Answer,
    private readonly route: 'engine' | 'chat' = 'engine'
  ) {}

  /** Says whether the other side can be reached now. */
  readonly changed = new Signal<this, boolean>(this);

  get isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect(): void {
    const { wsUrl, token, appendToken } = this.settings;
    let url = URLExt.join(wsUrl, 'cellwright', this.route);
    if (appendToken && token) {
      url += `?token=${encodeURIComponent(token)}`;
    }
    const socket = new this.settings.WebSocket(url);
    this.socket = socket;
    socket.onopen = () => {
      this.pause = FIRST_PAUSE;
      this.changed.emit(true);
    };
    socket.onmessage = (event: MessageEvent) => this.take(JSON.parse(event.data));
    socket.onclose = () => this.lose();
  }

  /** Call a verb; `onEvent` hears what happens meanwhile. */
  call(method: string, params: Facts, onEvent?: (facts: Facts) => void): Promise<any> {
    if (!this.isOpen) {
      return Promise.reject(new EngineError('ENGINE_LOST', `The ${this.peer} cannot be reached`));
    }
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject, onEvent });
      this.send({ id, method, params });
    });
  }

  /** Hear what happens to a notebook, or to all; returns what ends it. */
  watch(params: Facts, onEvent: (facts: Facts) => void): () => void {
    if (!this.isOpen) {
      return () => undefined;
    }
    this.call('watch', params, onEvent).catch(() => undefined);
    const call = this.number;
    return () => {
      if (this.calls.has(call)) {
        this.send({ method: 'stop', params: { call } });
      }
    };
  }

  private get peer(): string {
    return this.route === 'engine' ? 'engine' : 'Jupyter server';
  }

  private send(message: Facts): void {
    if (this.isOpen) {
      this.socket!.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    }
  }

  private take(message: Facts): void {
    if (message.method === 'event') {
      this.calls.get(message.params.call)?.onEvent?.(message.params);
    } else if (message.method !== undefined && message.id === undefined) {
      this.answer(message.method, message.params).catch(error => console.warn('Cellwright:', error));
    } else if (message.method !== undefined) {
      void this.reply(message);
    } else {
      const call = this.calls.get(message.id);
      this.calls.delete(message.id);
      if (message.error) {
        const { code, hint } = message.error.data ?? {};
        call?.reject(new EngineError(code ?? 'INTERNAL_ERROR', message.error.message, hint));
      } else {
        call?.resolve(message.result);
      }
    }
  }

  private async reply(message: Facts): Promise<void> {
    try {
      const result = await this.answer(message.method, message.params);
      this.send({ id: message.id, result });
    } catch (error) {
      const data = error instanceof EngineError ? { code: error.code } : undefined;
      this.send({ id: message.id, error: { code: -32000, message: String(error), data } });
    }
  }

  private lose(): void {
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) {
      call.reject(new EngineError('ENGINE_LOST', `The connection with the ${this.peer} broke`));
    }
    this.changed.emit(false);
    setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }

  private socket: WebSocket | null = null;
  private number = 0;
  private pause = FIRST_PAUSE;
  private readonly calls = new Map<number, Call>();
}
