// What the person runs in a tab: told to the engine, so that it is on record.
import type { Cell } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type { Facts } from './wire';

type Run = { source: string; began: number; count: number | null; life: string; request?: string };
type Args = { notebook: unknown; cell: Cell; success?: boolean; error?: { errorName?: string } | null };

const now = () => Date.now() / 1000;

/** Follows the cells that the person runs in one tab, and the life of their kernel. */
export class PersonRuns {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly tell: (facts: Facts) => void
  ) {
    NotebookActions.executionScheduled.connect(this.begin, this);
    NotebookActions.executed.connect(this.end, this);
    panel.sessionContext.iopubMessage.connect(this.take, this);
    panel.sessionContext.kernelChanged.connect(this.forget, this);
    panel.sessionContext.statusChanged.connect(this.noteStatus, this);
    this.listen();
  }

  dispose(): void {
    NotebookActions.executionScheduled.disconnect(this.begin, this);
    NotebookActions.executed.disconnect(this.end, this);
    this.panel.sessionContext.iopubMessage.disconnect(this.take, this);
    this.panel.sessionContext.kernelChanged.disconnect(this.forget, this);
    this.panel.sessionContext.statusChanged.disconnect(this.noteStatus, this);
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

  private begin(_: unknown, { notebook, cell }: Args): void {
    if (notebook === this.panel.content && cell.model.type === 'code') {
      const { id, sharedModel } = cell.model;
      const run = { source: sharedModel.getSource(), began: now(), count: null, life: '' };
      this.running.set(id, [...(this.running.get(id) ?? []), run]);
      this.tell({ cell: id, status: 'pending' });
    }
  }

  private end(_: unknown, { notebook, cell, success, error }: Args): void {
    const { id } = cell.model;
    const [run, ...later] = this.running.get(id) ?? [];
    if (notebook !== this.panel.content || !run) {
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
    this.kernel = this.panel.sessionContext.session?.kernel ?? null;
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
}
