// What the person runs in a tab: told to the engine, so that it is on record.
import type { Cell, CodeCell } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import type { KernelMessage } from '@jupyterlab/services';

import type { Facts } from './wire';

type Run = { source: string; began: number; count: number | null; life: string };
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
  }

  dispose(): void {
    NotebookActions.executionScheduled.disconnect(this.begin, this);
    NotebookActions.executed.disconnect(this.end, this);
    this.panel.sessionContext.iopubMessage.disconnect(this.take, this);
    this.panel.sessionContext.kernelChanged.disconnect(this.forget, this);
    this.panel.sessionContext.statusChanged.disconnect(this.noteStatus, this);
  }

  /** What the kernel process calls itself; empty if it is new, null if that is not known. */
  life: string | null = null;

  /** Whether the person runs a cell here now; then its outputs are theirs. */
  has(id: string): boolean {
    return this.running.has(id);
  }

  private begin(_: unknown, { notebook, cell }: Args): void {
    if (notebook === this.panel.content && cell.model.type === 'code') {
      const source = cell.model.sharedModel.getSource();
      this.running.set(cell.model.id, { source, began: now(), count: null, life: '' });
      this.tell({ cell: cell.model.id, status: 'pending' });
    }
  }

  private end(_: unknown, { notebook, cell, success, error }: Args): void {
    const run = this.running.get(cell.model.id);
    if (notebook !== this.panel.content || !run) {
      return;
    }
    this.running.delete(cell.model.id);
    const isInterrupted = error?.errorName === 'KeyboardInterrupt';
    const status = success ? 'ok' : isInterrupted || !run.life ? 'cancelled' : 'error';
    this.tell({ cell: cell.model.id, status, ...run, seconds: now() - run.began });
  }

  /** The kernel says what it begins to run, and in which life. */
  private take(_: unknown, message: KernelMessage.IMessage): void {
    if (message.header.msg_type !== 'execute_input') {
      return;
    }
    this.life = message.header.session;
    const parent = message.parent_header as Facts;
    const found = this.panel.content.widgets.find(
      widget => (widget as CodeCell).outputArea?.future?.msg.header.msg_id === parent.msg_id
    );
    const run = found && this.running.get(found.model.id);
    if (found && run) {
      const { code, execution_count: count } = message.content as Facts;
      Object.assign(run, { source: code, count, began: now(), life: this.life });
      this.tell({ cell: found.model.id, status: 'running', ...run });
    }
  }

  private forget(): void {
    this.life = null;
  }

  private noteStatus(_: unknown, status: string): void {
    if (status === 'restarting' || status === 'autorestarting') {
      this.life = '';
    }
  }

  private readonly running = new Map<string, Run>();
}
