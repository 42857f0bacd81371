// What the person runs in a tab: told to the engine, so that it is on record.
import type { Cell } from '@jupyterlab/cells';
import { Notebook, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type { Facts } from './wire';

type Run = { source: string; began: number; count: number | null; life: string; request?: string };
type Args = { notebook: Notebook; cell: Cell; success?: boolean; error?: { errorName?: string } | null };

const now = () => Date.now() / 1000;

/** Follows the cells that the person runs in all views of a notebook, and the life of their kernel. */
export class PersonRuns {
  constructor(private readonly context: NotebookPanel['context']) {
    const { sessionContext } = context;
    NotebookActions.executionScheduled.connect(this.begin, this);
    NotebookActions.executed.connect(this.end, this);
    sessionContext.iopubMessage.connect(this.take, this);
    sessionContext.kernelChanged.connect(this.forget, this);
    sessionContext.statusChanged.connect(this.noteStatus, this);
    this.listen();
  }

  /** Where it is told what happens to these cells. */
  tell: (facts: Facts) => void = () => undefined;

  dispose(): void {
    NotebookActions.executionScheduled.disconnect(this.begin, this);
    NotebookActions.executed.disconnect(this.end, this);
    const { sessionContext } = this.context;
    sessionContext.iopubMessage.disconnect(this.take, this);
    sessionContext.kernelChanged.disconnect(this.forget, this);
    sessionContext.statusChanged.disconnect(this.noteStatus, this);
    this.kernel?.anyMessage.disconnect(this.noteRequest, this);
  }

  /** Tell again what runs: an engine that was away does not know it. */
  tellAll(): void {
    for (const [cell, runs] of this.running) {
      const run = runs[runs.length - 1];
      this.tell({ cell, status: run.life ? 'running' : 'pending', ...run });
    }
  }

  /** What the kernel process calls itself; empty if it is new, null if that is not known. */
  life: string | null = null;

  /** Whether the person runs a cell here now; then its outputs are theirs. */
  has(id: string): boolean {
    return this.running.has(id);
  }

  /** Forget what the person runs in a view that is closed: it shows no more; returns whether they did. */
  leave(view: Notebook): boolean {
    const { size } = this.running;
    for (const [cell, runs] of this.running) {
      if (this.views.get(runs[0]) === view) {
        this.running.delete(cell);
      }
    }
    return this.running.size < size;
  }

  private begin(_: unknown, { notebook, cell }: Args): void {
    if (notebook.model === this.context.model && cell.model.type === 'code') {
      const { id, sharedModel } = cell.model;
      const run = { source: sharedModel.getSource(), began: now(), count: null, life: '' };
      this.running.set(id, [...(this.running.get(id) ?? []), run]);
      this.views.set(run, notebook);
      this.tell({ cell: id, status: 'pending' });
    }
  }

  private end(_: unknown, { notebook, cell, success, error }: Args): void {
    const { id } = cell.model;
    const [run, ...later] = this.running.get(id) ?? [];
    if (!run || this.views.get(run) !== notebook) {
      return;
    }
    if (later.length) {
      this.running.set(id, later); // run again meanwhile: the engine hears how this one ends
      return;
    }
    this.running.delete(id);
    const isInterrupted = error?.errorName === 'KeyboardInterrupt';
    const status = success ? 'ok' : isInterrupted || !run.life ? 'cancelled' : 'error';
    this.tell({ cell: id, status, ...run, seconds: now() - run.began });
  }

  /** The kernel says what it begins to run, and in which life. */
  private take(_: unknown, message: KernelMessage.IMessage): void {
    if (message.header.msg_type !== 'execute_input') {
      return;
    }
    this.life = message.header.session;
    const request = (message.parent_header as Facts).msg_id;
    for (const [cell, runs] of this.running) {
      const run = runs.find(each => each.request === request);
      if (run) {
        const { code, execution_count: count } = message.content as Facts;
        Object.assign(run, { source: code, count, began: now(), life: this.life });
        this.tell({ cell, status: 'running', ...run });
      }
    }
  }

  /** Note by which message the kernel is asked to run a cell: the engine listens to it too. */
  private noteRequest(_: unknown, { msg, direction }: Kernel.IAnyMessageArgs): void {
    const cell = (msg.metadata as Facts)?.cellId;
    const run = this.running.get(cell)?.find(each => !each.request);
    if (direction === 'send' && msg.header.msg_type === 'execute_request' && run) {
      run.request = msg.header.msg_id;
      this.tell({ cell, status: 'pending', ...run });
    }
  }

  private forget(): void {
    this.life = null;
    this.listen();
  }

  private listen(): void {
    this.kernel?.anyMessage.disconnect(this.noteRequest, this);
    this.kernel = this.context.sessionContext.session?.kernel ?? null;
    this.kernel?.anyMessage.connect(this.noteRequest, this);
  }

  private noteStatus(_: unknown, status: string): void {
    if (status === 'restarting' || status === 'autorestarting') {
      this.life = '';
    }
  }

  private kernel: Kernel.IKernelConnection | null = null;
  /** By cell: the oldest first, if the person runs it again before it is over. */
  private readonly running = new Map<string, Run[]>();
  private readonly views = new WeakMap<Run, Notebook>();
}
