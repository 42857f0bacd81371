// Kernels that read, edit and run their own notebook: their requests go to the engine.
import type { CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';

import type { Facts } from './wire';

const TARGETS = ['jupyter.notebook.manipulator.v1', 'jupyter.notekit.v1'];
/** Requests in whose name a kernel may speak: the others only ask what it is and knows. */
const CAUSES = ['execute_request', 'comm_open', 'comm_msg'];
const KINDS: { [type: string]: string } = { comm_open: 'open', comm_msg: 'msg', comm_close: 'close' };

/**
 * Passes on what the kernel asks in cells that this page runs, and sends it the answers.
 *
 * Requests of cells that others run are theirs to answer. Comms are never closed here.
 */
export class Manipulator {
  constructor(
    private readonly panel: NotebookPanel,
    private readonly listViews: () => NotebookPanel[],
    private readonly pass: (facts: Facts) => Promise<unknown>
  ) {
    panel.sessionContext.kernelChanged.connect(this.attach, this);
    panel.sessionContext.iopubMessage.connect(this.take, this);
    this.attach();
  }

  dispose(): void {
    this.panel.sessionContext.kernelChanged.disconnect(this.attach, this);
    this.panel.sessionContext.iopubMessage.disconnect(this.take, this);
  }

  /** Send an answer of the engine to the kernel. */
  reply(id: string, data: Facts, channel: string): void {
    const kernel = this.kernel;
    if (!kernel) {
      return;
    }
    if (channel === 'control') {
      const content = { comm_id: id, data };
      const about = { session: kernel.clientId, username: kernel.username };
      const made = { msgType: 'comm_msg', channel, content, ...about } as any;
      kernel.sendControlMessage(KernelMessage.createMessage(made) as any, false, true);
      return;
    }
    let comm = this.comms.get(id);
    if (!comm || comm.isDisposed) {
      comm = kernel.createComm(TARGETS[0], id); // opened before this page was
      this.comms.set(id, comm);
    }
    comm.send(data as any);
  }

  /** Let the comms of a new kernel be open: JupyterLab closes those that no one expects. */
  private attach(): void {
    this.comms.clear();
    this.runner = '';
    for (const target of TARGETS) {
      this.kernel?.registerCommTarget(target, comm => {
        this.comms.set(comm.commId, comm);
      });
    }
  }

  /** Pass on a message; what comes of it is not waited for, or the kernel's output would wait. */
  private take(_: unknown, message: KernelMessage.IMessage): void {
    const parent = message.parent_header as Facts;
    if (message.header.msg_type === 'execute_input') {
      this.runner = parent.session;
    }
    const kind = KINDS[message.header.msg_type];
    if (!kind) {
      return;
    }
    const { comm_id: comm, data, target_name: target } = message.content as Facts;
    const isOurs = kind === 'open' ? TARGETS.includes(target) : this.mayBeOurs(comm, data);
    if (!isOurs || (kind === 'msg' && this.findSession(parent) !== this.kernel?.clientId)) {
      return;
    }
    const cell = this.findRunning(parent.msg_id);
    this.pass({ kind, comm, target: target ?? null, data: data ?? {}, cell }).catch(error => {
      if (kind === 'msg') {
        this.refuse(comm, data, String(error.message));
      }
    });
  }

  /**
   * Find who is to answer: the one whose request the kernel works on.
   *
   * Before ipykernel 7 a thread speaks in the name of the newest request of any page, also of one
   * that has just been opened and asks what kernel it is. Then it is the one that ran a cell last.
   */
  private findSession(parent: Facts): string {
    return CAUSES.includes(parent.msg_type) ? parent.session : this.runner;
  }

  /** Tell the kernel at once that there is no answer, or its cell would wait for one. */
  private refuse(comm: string, data: Facts, message: string): void {
    const error = { code: 'INTERNAL_ERROR', message };
    this.reply(comm, { request_id: data.request_id, status: 'error', error }, 'shell');
  }

  private mayBeOurs(comm: string, data: Facts): boolean {
    const isRequest = typeof data?.method === 'string' && 'request_id' in data;
    return this.comms.has(comm) || (isRequest && !this.kernel?.hasComm(comm));
  }

  private findRunning(request: string): string | null {
    const widgets = this.listViews().flatMap(view => [...view.content.widgets]);
    const found = widgets.find(widget => {
      const future = (widget as CodeCell).outputArea?.future;
      return future && !future.isDisposed && future.msg.header.msg_id === request;
    });
    return found?.model.id ?? null;
  }

  private get kernel(): Kernel.IKernelConnection | null | undefined {
    return this.panel.sessionContext.session?.kernel;
  }

  private readonly comms = new Map<string, Kernel.IComm>();
  /** The session that ran a cell last, here or elsewhere; empty if that was before this page. */
  private runner = '';
}
