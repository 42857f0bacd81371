// One open notebook: registered with the engine, and changed, run and saved for it.
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';

import { Conflicts } from './conflicts';
import { LiveDocument } from './document';
import { Manipulator } from './manipulator';
import { PresenceWatcher } from './presence';
import { PersonRuns } from './runs';
import type { Facts, Wire } from './wire';

const MARKED = 2_000;

/** A tab, from the moment its notebook is there until it is closed. */
export class LiveTab {
  constructor(
    readonly panel: NotebookPanel,
    private readonly wire: Wire,
    contents: Contents.IManager,
    isCurrent: () => boolean,
    private readonly follows: () => boolean
  ) {
    this.runs = new PersonRuns(panel, facts => this.tell('executed', facts));
    this.document = new LiveDocument(panel, id => this.runs.has(id));
    this.conflicts = new Conflicts(panel, contents);
    this.presence = new PresenceWatcher(
      panel,
      isCurrent,
      () => this.runs.life,
      facts => this.tell('presence', facts)
    );
    this.manipulator = new Manipulator(panel, facts => this.call('manipulate', facts));
    panel.context.pathChanged.connect(this.onPath, this);
    panel.disposed.connect(() => this.dispose());
    this.path = panel.context.path;
  }

  /** The path that the engine knows it by. */
  path: string;

  register(): void {
    const facts = this.presence.describe();
    this.wire.call('editor.register', { path: this.path, ...facts }).then(
      () => {
        this.panel.addClass('cw-shared');
        this.watch();
      },
      error => console.warn(`Cellwright: ${this.path} is not shared:`, error.message)
    );
  }

  dispose(): void {
    this.presence.dispose();
    this.document.dispose();
    this.manipulator.dispose();
    this.runs.dispose();
    this.tell('gone', {});
  }

  /** Answer a request of the engine. */
  async answer(method: string, params: Facts): Promise<Facts> {
    switch (method) {
      case 'editor.read':
        return this.document.read(params.since);
      case 'editor.change':
      case 'editor.land': {
        const isLanding = method === 'editor.land';
        const facts = this.document.change(params.since, params.edits, params.request, isLanding);
        if (facts.applied && !isLanding) {
          this.mark(params.edits);
        }
        return facts;
      }
      case 'editor.save':
        if (this.conflicts.size) {
          throw new Error(`cells ${[...this.conflicts.keys()].join(', ')} are in conflict with the file`);
        }
        await this.panel.context.save();
        return { saved: !this.panel.context.model.dirty };
      case 'editor.merged':
        await this.conflicts.show(params.hash, params.conflicts);
        return {};
      case 'editor.reply':
        this.manipulator.reply(params.comm, params.data, params.channel);
        return {};
      default:
        throw new Error(`unknown request ${method}`);
    }
  }

  private call(what: string, facts: Facts): Promise<any> {
    return this.wire.call(`editor.${what}`, { path: this.path, ...facts });
  }

  private tell(what: string, facts: Facts): void {
    this.call(what, facts).catch(() => undefined);
  }

  /** Show which cells run for others; their outputs come by themselves. */
  private watch(): void {
    const onEvent = (facts: Facts) => {
      if (facts.event === 'cell') {
        this.setState(facts.handle, facts.status === 'running' ? 'running' : 'idle');
      }
    };
    this.wire.call('watch', { path: this.path }, onEvent).catch(() => undefined);
  }

  private setState(id: string, state: 'running' | 'idle'): void {
    const cells = this.panel.content.model?.cells;
    for (const model of cells ?? []) {
      if (model.id === id && model.type === 'code' && !this.runs.has(id)) {
        (model as ICodeCellModel).executionState = state;
      }
    }
  }

  /** Point at cells that were changed for others, for a moment. */
  private mark(edits: Facts[]): void {
    const ids = new Set(edits.map(edit => edit.cell?.id ?? edit.cell));
    const widgets = this.panel.content.widgets.filter(widget => ids.has(widget.model.id));
    for (const widget of widgets) {
      widget.addClass('cw-changed');
      setTimeout(() => widget.removeClass('cw-changed'), MARKED);
    }
    if (widgets.length && this.follows()) {
      void this.panel.content.scrollToCell(widgets[0], 'auto');
    }
  }

  private onPath(): void {
    this.tell('gone', {});
    this.path = this.panel.context.path;
    this.register();
  }

  private readonly document: LiveDocument;
  private readonly conflicts: Conflicts;
  private readonly presence: PresenceWatcher;
  private readonly manipulator: Manipulator;
  private readonly runs: PersonRuns;
}
