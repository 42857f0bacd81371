// One open notebook: registered with the engine, and changed, run and saved for it.
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { Conflicts } from './conflicts';
import { LiveDocument } from './document';
import { Manipulator } from './manipulator';
import { PresenceWatcher, Views } from './presence';
import { Review } from './review';
import { PersonRuns } from './runs';
import { StaleMarks } from './stale';
import type { Facts, Wire } from './wire';

const MARKED = 2_000;
const AGAIN = 2_000;

/** What a person has set, as it is now. */
export type TabSettings = { follow: () => boolean; stale: () => boolean };

/** A tab, from the moment its notebook is there until it is closed. */
export class LiveTab {
  constructor(
    readonly panel: NotebookPanel,
    private readonly wire: Wire,
    private readonly views: Views,
    private readonly settings: TabSettings,
    readonly runs = new PersonRuns(panel.context)
  ) {
    this.runs.tell = facts => this.tell('executed', facts);
    this.document = new LiveDocument(panel, id => this.runs.has(id));
    this.conflicts = new Conflicts(panel);
    this.presence = new PresenceWatcher(
      panel,
      views,
      () => this.runs.life,
      () => this.document.saved,
      facts => this.tell('presence', facts)
    );
    this.manipulator = new Manipulator(panel, views.list, facts => this.call('manipulate', facts));
    this.review = new Review(panel, {
      undo: change => this.wire.call('undo', { path: this.path, change }),
      accept: (changes, cells) => this.tell('accept', { changes, cells }),
      readBefore: async (cell, change) => (await this.call('before', { cell, change })).source
    });
    const findStale = () => this.wire.call('stale', { path: this.path });
    this.stale = new StaleMarks(panel, findStale, settings.stale);
    panel.context.pathChanged.connect(this.onPath, this);
    panel.disposed.connect(() => this.dispose());
    this.path = panel.context.path;
  }

  /** The path that the engine knows it by. */
  path: string;
  readonly presence: PresenceWatcher;
  readonly review: Review;
  readonly stale: StaleMarks;

  register(): void {
    clearTimeout(this.again);
    const facts = this.presence.describe();
    this.wire.call('editor.register', { path: this.path, ...facts }).then(
      answer => {
        if (this.panel.isDisposed) {
          return;
        }
        this.actor = answer.actor;
        this.refused = '';
        this.panel.addClass('cw-shared');
        this.watch();
        this.runs.tellAll();
        (answer.changes ?? []).forEach((event: Facts) => this.noteChange(event));
        for (const [id, state] of Object.entries(answer.running ?? {})) {
          if (state === 'running') {
            this.setState(id, 'running'); // one that waits may never begin, and no event says so
          }
        }
        this.stale.note();
      },
      error => {
        if (error.message !== this.refused) {
          console.warn(`Cellwright: ${this.path} is not shared:`, error.message);
        }
        this.refused = error.message;
        // Another program may have the notebook now. A connection that broke is made again anyway.
        if (error.code !== 'ENGINE_LOST' && !this.panel.isDisposed) {
          this.again = window.setTimeout(() => this.register(), AGAIN);
        }
      }
    );
  }

  /** The engine cannot be reached: until it can, the file is the notebook to others. */
  lose(): void {
    clearTimeout(this.again);
    this.panel.removeClass('cw-shared');
  }

  /** Have the engine run what is stale, in the kernel of this tab. */
  async runStale(): Promise<void> {
    try {
      await this.wire.call('run', { path: this.path, stale: true });
    } catch (error) {
      this.review.report((error as Error).message);
    }
  }

  /** Another view of it is closed: what the person runs there, the engine puts into the notebook. */
  leave(view: NotebookPanel): void {
    if (this.runs.leave(view.content)) {
      this.register();
    }
  }

  dispose(): void {
    clearTimeout(this.again);
    this.unwatch();
    this.stale.dispose();
    this.presence.dispose();
    this.document.dispose();
    this.manipulator.dispose();
    this.runs.leave(this.panel.content);
    if (!this.views.list().length) {
      this.runs.dispose();
      this.tell('gone', {}); // or another view registers, with these runs
    }
  }

  /** Answer a request of the engine. */
  async answer(method: string, params: Facts): Promise<Facts> {
    switch (method) {
      case 'editor.read':
        return this.document.read(params.since);
      case 'editor.change':
      case 'editor.land': {
        const isLanding = method === 'editor.land';
        const { model } = this.panel.context;
        const { dirty } = model;
        const facts = this.document.change(params.since, params.edits, params.request, isLanding);
        if (facts.applied && !isLanding) {
          this.mark(params.edits);
        }
        if (facts.applied && params.hash) {
          this.conflicts.know(params.hash);
          if (!this.conflicts.open.length) {
            // It was as the file was, and is as the file is. What the person types is before or after.
            model.dirty = dirty;
          }
        }
        return facts;
      }
      case 'editor.save':
        if (this.conflicts.open.length) {
          throw new Error(`cells ${this.conflicts.open.join(', ')} are in conflict with the file`);
        }
        await this.panel.context.save();
        // Or it had failed. What is typed meanwhile is the person's.
        return { saved: true, news: this.document.saved };
      case 'editor.merged':
        this.conflicts.show(params.hash, params.conflicts);
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

  /** Show what happens to the notebook elsewhere; outputs come by themselves. */
  private watch(): void {
    this.unwatch();
    this.unwatch = this.wire.watch({ path: this.path }, event => {
      if (event.event === 'cell') {
        this.setState(event.handle, event.status === 'running' ? 'running' : 'idle');
        if (event.status === 'running') {
          this.others.add(event.handle);
          this.follow(event.handle);
        } else {
          this.others.delete(event.handle);
        }
        void this.attach();
        return;
      }
      if (event.event === 'changed') {
        this.noteChange(event);
      } else if (event.event === 'accepted') {
        this.review.close(event.changes, event.cells);
      }
      this.stale.note();
    });
  }

  /** Use the kernel in which others run the notebook, if this page has none: it has only one. */
  private async attach(): Promise<void> {
    const { sessionContext } = this.panel;
    const { sessionManager } = sessionContext;
    const isNeeded = () => !this.panel.isDisposed && !sessionContext.session?.kernel;
    if (this.isAttaching || !isNeeded()) {
      return;
    }
    this.isAttaching = true;
    try {
      await sessionManager.refreshRunning();
      const kernel = [...sessionManager.running()].find(each => each.path === this.path)?.kernel;
      if (kernel && isNeeded()) {
        await sessionContext.changeKernel({ id: kernel.id, name: kernel.name });
      }
    } catch (error) {
      console.warn(`Cellwright: ${this.path} has no kernel here:`, (error as Error).message);
    }
    this.isAttaching = false;
    if (this.others.size && isNeeded()) {
      setTimeout(() => void this.attach(), AGAIN); // it may only be starting
    }
  }

  private noteChange(event: Facts): void {
    if (event.actor !== this.actor) {
      this.review.note(event);
    }
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
    if (widgets.length) {
      this.follow(widgets[0].model.id);
    }
  }

  /** Scroll to where an agent works, if the person wants that. */
  private follow(id: string): void {
    const { content } = this.panel;
    const place = this.settings.follow() ? content.widgets.findIndex(each => each.model.id === id) : -1;
    if (place >= 0) {
      // `scrollToCell` would take the focus from the person.
      void content.scrollToItem(place, 'auto').catch(() => undefined);
    }
  }

  private onPath(): void {
    this.tell('gone', { renamed: this.panel.context.path });
    this.path = this.panel.context.path;
    this.lose();
    this.register();
  }

  private actor = '';
  private again = 0;
  private isAttaching = false;
  private readonly others = new Set<string>(); // cells that run for others
  private refused = '';
  private unwatch: () => void = () => undefined;
  private readonly document: LiveDocument;
  private readonly conflicts: Conflicts;
  private readonly manipulator: Manipulator;
}
