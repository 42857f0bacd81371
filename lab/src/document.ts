// The notebook of one tab: what changed since when, and edits of the engine applied to it.
import type { ISharedCell, ISharedNotebook, NotebookChange } from '@jupyter/ydoc';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IOutput } from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { JSONExt } from '@lumino/coreutils';

import type { Facts } from './wire';
import { LiveWidgets } from './widgets';

const LONGEST_SAVE = 5_000;
const TAIL = 100; // of a text, by which it is known that all of it is there
const READABLE = 100_000; // characters of a text that may be read whole for each line that it gets

type Splice = { start: number; end: number; text: string };
type Edit = Facts & { edit: string };

/** Counts the changes of a notebook, so that only what is new travels, and applies edits by id. */
export class LiveDocument {
  /** `isTaken` says whether the person runs a cell: the outputs of others do not land there. */
  constructor(
    readonly panel: NotebookPanel,
    private readonly isTaken: (id: string) => boolean
  ) {
    this.notebook = panel.content.model!.sharedModel;
    this.widgets = new LiveWidgets(panel);
    this.notebook.changed.connect(this.noteChange, this);
    panel.context.saveState.connect(this.noteSave, this);
    panel.context.fileChanged.connect(this.findHash, this);
    this.queueSaves();
    this.watchCells();
  }

  /**
   * The number of the newest change.
   *
   * It begins with the clock: the next view of a notebook goes on with a higher one, so that an
   * engine that still asks for what is new since the last view is told everything.
   */
  version = Date.now();

  dispose(): void {
    this.notebook.changed.disconnect(this.noteChange, this);
    this.panel.context.saveState.disconnect(this.noteSave, this);
    this.panel.context.fileChanged.disconnect(this.findHash, this);
    delete (this.panel.context as Facts).save;
    this.stops.forEach(stop => stop());
    this.stops.clear();
  }

  /** What the page has saved last, for an engine that has read all until `since`; null if that is not known. */
  saved: Facts | null = null;

  /** What has changed since a version; everything since -1. */
  read(since: number, but: Set<string> = new Set()): Facts {
    this.told = this.version;
    return this.describe(since, but);
  }

  private describe(since: number, but: Set<string> = new Set()): Facts {
    const isNew = (id: string) => (this.changed.get(id) ?? 0) > since && !but.has(id);
    const cells = this.notebook.cells.filter(cell => isNew(cell.id));
    const facts: Facts = {
      version: this.version,
      dirty: this.panel.context.model.dirty,
      saving: this.isSaving,
      hash: this.findHash(),
      nbformat_minor: this.notebook.nbformat_minor,
      cells: cells.map(cell => ({ ...cell.toJSON(), id: cell.id }))
    };
    if (this.structure > since) {
      facts.order = this.notebook.cells.map(cell => cell.id);
    }
    if (this.metadata > since) {
      facts.metadata = this.notebook.getMetadata();
    }
    return facts;
  }

  /**
   * Let each save wait for the one before it, whoever asks for it.
   *
   * Of two at once, the later one finds a file that it does not know, so that JupyterLab asks the
   * person about it; and the older one may be the last to be written.
   */
  private queueSaves(): void {
    const { context } = this.panel;
    const save = context.save.bind(context);
    let last = Promise.resolve();
    context.save = () => {
      const now = last.then(save);
      const isOver = now.catch(() => undefined); // a person may also cancel it, which is not said otherwise
      last = Promise.race([isOver, new Promise<void>(done => setTimeout(done, LONGEST_SAVE))]);
      return now;
    };
  }

  /** Apply edits in one step, unless a cell that they touch has changed since `since`. */
  change(since: number, edits: Edit[], request: string, isLanding: boolean): Facts {
    const before = this.answered.get(request);
    if (before !== undefined) {
      return before; // asked again: it was applied, and the answer got lost
    }
    const isFree = (edit: Edit) => !['outputs', 'grow'].includes(edit.edit) || !this.isTaken(edit.cell);
    const applied = this.mayApply(since, edits) && (!isLanding || edits.every(isFree));
    if (applied) {
      this.apply(edits, !isLanding);
    }
    const grown = applied ? edits.filter(edit => edit.edit === 'grow').map(edit => this.measure(edit)) : [];
    const known = grown.filter(each => each !== null);
    const facts = { ...this.read(since, new Set(known.map(each => each!.id))), grown: known, applied };
    this.answered.set(request, facts);
    if (this.answered.size > 50) {
      this.answered.delete(this.answered.keys().next().value!);
    }
    return facts;
  }

  /** The cells that were edited for others lately, to be shown to the person. */
  find(id: string): ISharedCell | undefined {
    return this.notebook.cells.find(cell => cell.id === id);
  }

  /** The hash of the file as it was read or saved last; JupyterLab loses it when it is renamed. */
  private findHash(): string {
    this.hash = this.panel.context.contentsModel?.hash ?? this.hash;
    return this.hash;
  }

  /** Whether it is being saved now; JupyterLab does not say that a person cancelled it. */
  private get isSaving(): boolean {
    return this.saving !== null && Date.now() - this.saving.began < LONGEST_SAVE;
  }

  private mayApply(since: number, edits: Edit[]): boolean {
    return edits.every(edit => {
      const id = typeof edit.cell === 'string' ? edit.cell : edit.edit === 'replace' ? edit.cell.id : null;
      const isThere = id === null || (this.find(id) !== undefined && (this.edited.get(id) ?? 0) <= since);
      return isThere && (edit.edit !== 'grow' || this.mayGrow(edit));
    });
  }

  private apply(edits: Edit[], isUndoable: boolean): void {
    const structural = edits.filter(edit => ['insert', 'delete', 'move', 'replace'].includes(edit.edit));
    if (structural.length) {
      this.keepPlace(() =>
        step(this.notebook, isUndoable, ...group(structural).map(part => () => this.restructure(part)))
      );
    }
    for (const edit of edits) {
      if (edit.edit === 'source') {
        const cell = this.find(edit.cell)!;
        // A step of its own in the undo history of its cell: one Ctrl-Z takes it back.
        step(cell, isUndoable, () => {
          for (const { start, end, text } of [...(edit.splices as Splice[])].reverse()) {
            cell.updateSource(start, end, text);
          }
        });
      } else if (edit.edit === 'metadata') {
        const cell = edit.cell === undefined ? undefined : this.find(edit.cell);
        const trusted = cell?.getMetadata('trusted'); // of the page alone
        const kept = cell ? dropTrust(edit.metadata) : edit.metadata;
        const metadata = trusted === undefined ? kept : { ...kept, trusted };
        const set = () => (cell ? cell.setMetadata(metadata) : this.notebook.setMetadata(metadata));
        this.notebook.transact(set, false);
      } else if (edit.edit === 'outputs') {
        this.land(edit.cell, edit.outputs, edit.execution_count, !isUndoable);
      } else if (edit.edit === 'grow') {
        this.grow(edit);
      }
    }
  }

  /** Change the structure in one transaction; `cells` is as it was before, until that is over. */
  private restructure(edits: Edit[]): void {
    const notebook = this.notebook;
    const ids = notebook.cells.map(cell => cell.id);
    const insert = (place: number, cell: Facts): void => {
      notebook.insertCell(place, joinSource(cell));
      ids.splice(place, 0, cell.id);
    };
    const remove = (place: number): void => {
      notebook.deleteCell(place);
      ids.splice(place, 1);
    };
    for (const edit of edits) {
      const place = ids.indexOf(edit.cell.id ?? edit.cell);
      const behind = edit.after ? ids.indexOf(edit.after) + 1 : 0;
      if (edit.edit === 'insert') {
        insert(behind, edit.cell);
      } else if (edit.edit === 'delete') {
        remove(place);
      } else if (edit.edit === 'replace') {
        remove(place);
        insert(place, edit.cell);
      } else {
        notebook.moveCell(place, place < behind ? behind - 1 : behind);
      }
    }
  }

  /**
   * Put outputs into a cell; what is there already stays as it is, so that nothing flickers.
   *
   * Those of a run are as trusted as their cell, and their widgets are shown: they come from the
   * kernel of this page. All others come from a file, and a file says nothing about trust.
   */
  private land(id: string, outputs: IOutput[], count: number | null, isRun: boolean): void {
    const model = this.findModel(id)!;
    const wanted = outputs.map(joinOutput);
    const there = model.outputs.toJSON();
    let same = 0;
    while (same < there.length && JSONExt.deepEqual(there[same] as any, wanted[same] ?? null)) {
      same++;
    }
    if (isRun) {
      this.widgets.admit(wanted.slice(same));
    } else if (wanted.length > same) {
      this.distrust(model);
    }
    const rest = same === there.length ? '' : continueStream(there, wanted, same);
    if (rest === null) {
      model.outputs.fromJSON(wanted);
    } else {
      if (rest) {
        addText(model, rest);
      }
      wanted.slice(there.length).forEach(output => model.outputs.add(output));
    }
    if (model.executionCount !== count) {
      model.executionCount = count;
    }
  }

  /** Whether the outputs of a cell are still those to which an edit adds. */
  private mayGrow(edit: Edit): boolean {
    const outputs = this.findModel(edit.cell)?.outputs;
    const text = outputs?.get(outputs.length - 1)?.streamText?.text;
    return outputs?.length === edit.kept && (text?.length ?? null) === edit.at;
  }

  /** Add to the outputs of a run: what is there is not read again, so that a flood stays cheap. */
  private grow(edit: Edit): void {
    const model = this.findModel(edit.cell)!;
    const outputs = (edit.outputs as IOutput[]).map(joinOutput);
    this.widgets.admit(outputs);
    if (edit.text) {
      this.ends.set(edit, addText(model, edit.text));
    }
    outputs.forEach(output => model.outputs.add(output));
    if (model.executionCount !== edit.execution_count) {
      model.executionCount = edit.execution_count;
    }
  }

  /** How much a cell has put out, in what will be saved; null if that is not as an edit has it. */
  private measure(edit: Edit): Facts | null {
    const { outputs, executionCount, sharedModel } = this.findModel(edit.cell)!;
    const saved = (sharedModel as any).ymodel?.get('outputs');
    const last = outputs.get(outputs.length - 1);
    const text = last.streamText?.text ?? null;
    const isSame =
      saved?.length === outputs.length &&
      (text === null || saved.get(outputs.length - 1).get('text')?.length === text.length) &&
      outputs.length === edit.kept + edit.outputs.length &&
      (edit.outputs.length > 0 || edit.at === null || text?.length === edit.at + edit.text.length);
    const length = text?.length ?? null;
    const isLong = (text?.length ?? 0) > READABLE && edit.outputs.length === 0;
    const tail = ((isLong && this.ends.get(edit)) || text || '').slice(-TAIL);
    return isSame
      ? { id: edit.cell, outputs: outputs.length, length, tail, execution_count: executionCount }
      : null;
  }

  private findModel(id: string): ICodeCellModel | undefined {
    const index = this.notebook.cells.findIndex(cell => cell.id === id);
    return index < 0 ? undefined : (this.panel.content.model!.cells.get(index) as ICodeCellModel);
  }

  /** Let a cell be as one that was only loaded; saving it does not make it trusted either. */
  private distrust(model: ICodeCellModel): void {
    model.trusted = false;
    this.notebook.transact(() => model.sharedModel.deleteMetadata('trusted'), false);
  }

  /** Let a change of the structure leave the active cell, its cursor and its focus as they were. */
  private keepPlace(change: () => void): void {
    const content = this.panel.content;
    const { activeCell, mode } = content;
    const id = activeCell?.model.id;
    const cursor = activeCell?.editor?.getCursorPosition();
    change();
    const index = content.widgets.findIndex(cell => cell.model.id === id);
    if (index < 0) {
      return;
    }
    if (content.activeCellIndex !== index) {
      content.activeCellIndex = index;
    }
    const cell = content.widgets[index];
    if (mode === 'edit' && (cell !== activeCell || !cell.editor?.hasFocus())) {
      void cell.ready.then(() => {
        content.mode = mode;
        cell.editor?.focus();
        if (cursor) {
          cell.editor?.setCursorPosition(cursor);
        }
      });
    }
  }

  /** JupyterLab also keeps here whether it is saved, and when: that is no change of the notebook. */
  private noteChange(_: unknown, change: NotebookChange): void {
    if (change.cellsChange) {
      this.structure = ++this.version;
      this.watchCells();
    }
    if (change.metadataChange || change.nbformatChanged) {
      this.metadata = ++this.version;
    }
  }

  /**
   * JupyterLab calls a notebook saved though it was changed while it was being saved.
   *
   * It writes what there is when the save begins: only then can that be described.
   */
  private noteSave(_: unknown, state: string): void {
    if (state === 'started') {
      const news = { since: this.told, ...this.describe(this.told), dirty: false, saving: false };
      this.saving = { version: this.version, began: Date.now(), news };
      return;
    }
    if (state === 'completed') {
      this.saved = this.saving && { ...this.saving.news, hash: this.findHash() };
    }
    if (state === 'failed' || this.saving?.version !== this.version) {
      this.panel.context.model.dirty = true;
    }
    this.saving = null;
  }

  /** Count the changes of cells that are new, and forget those that are gone. */
  private watchCells(): void {
    const here = new Map(this.notebook.cells.map(cell => [cell.id, cell]));
    for (const [id, stop] of this.stops) {
      if (here.get(id) !== this.watched.get(id)) {
        stop();
        this.stops.delete(id);
        this.changed.delete(id);
        this.edited.delete(id);
      }
    }
    for (const [id, cell] of here) {
      if (!this.stops.has(id)) {
        const touch = () => {
          this.changed.set(id, ++this.version);
          this.edited.set(id, this.version);
        };
        const { ymodel } = cell as any;
        // JupyterLab itself adds outputs without saying so.
        const note = (_: unknown, { origin }: { origin: unknown }) => {
          if (origin === 'silent-change') {
            this.changed.set(id, ++this.version);
          }
        };
        cell.changed.connect(touch);
        ymodel.observeDeep(note);
        this.watched.set(id, cell);
        this.stops.set(id, () => {
          cell.changed.disconnect(touch);
          ymodel.unobserveDeep(note);
        });
        this.changed.set(id, this.version);
        this.edited.set(id, this.version);
      }
    }
  }

  private readonly notebook: ISharedNotebook;
  private readonly widgets: LiveWidgets;
  private hash = '';
  private saving: { version: number; began: number; news: Facts } | null = null;
  private told = -1;
  private structure = this.version;
  private metadata = this.version;
  private readonly changed = new Map<string, number>();
  private readonly edited = new Map<string, number>(); // the same, without what a run puts out
  private readonly watched = new Map<string, ISharedCell>();
  private readonly stops = new Map<string, () => void>();
  private readonly answered = new Map<string, Facts>();
  private readonly ends = new WeakMap<Edit, string>(); // what edits have added to streams
}

/** Group what one transaction can do: JupyterLab lays the page out after each. A move is alone. */
function group(edits: Edit[]): Edit[][] {
  const parts: Edit[][] = [];
  for (const edit of edits) {
    const last = parts[parts.length - 1];
    if (last && edit.edit !== 'move' && last[0].edit !== 'move') {
      last.push(edit);
    } else {
      parts.push([edit]);
    }
  }
  return parts;
}

/** Make one step of an undo history of these changes: Yjs joins what follows each other quickly. */
function step(shared: ISharedCell | ISharedNotebook, isUndoable: boolean, ...changes: (() => void)[]): void {
  const history = (shared as any).undoManager ?? { stopCapturing: () => undefined };
  const { captureTimeout } = history;
  history.stopCapturing();
  history.captureTimeout = Infinity;
  changes.forEach(change => shared.transact(change, isUndoable));
  history.captureTimeout = captureTimeout;
  history.stopCapturing();
}

const join = (text: string | string[]): string => (Array.isArray(text) ? text.join('') : text);

function joinSource(cell: Facts): any {
  const metadata = dropTrust(cell.metadata ?? {});
  return { ...cell, metadata, source: join(cell.source), outputs: cell.outputs?.map(joinOutput) };
}

/** JupyterLab believes the metadata of a cell that it is trusted; a server never lets a file say so. */
function dropTrust(metadata: Facts): Facts {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => name !== 'trusted'));
}

function joinOutput(output: IOutput): IOutput {
  const joined: Facts = { ...output };
  if (joined.output_type === 'stream') {
    joined.text = join(joined.text);
  }
  if (joined.data) {
    const entries = Object.entries(joined.data as Facts);
    joined.data = Object.fromEntries(
      entries.map(([mime, value]) => [mime, isText(mime, value) ? join(value) : value])
    );
  }
  return joined as IOutput;
}

const isText = (mime: string, value: unknown): boolean =>
  Array.isArray(value) &&
  value.every(line => typeof line === 'string') &&
  !/^application\/(.*\+)?json$/.test(mime);

/** What a stream that is the last output has got more; null if the outputs differ otherwise. */
function continueStream(there: IOutput[], wanted: IOutput[], same: number): string | null {
  const [old, now] = [there[same] as Facts, wanted[same] as Facts | undefined];
  const isStream = old.output_type === 'stream' && now?.output_type === 'stream';
  if (!isStream || same !== there.length - 1 || old.name !== now!.name) {
    return null;
  }
  const [before, after] = [join(old.text), join(now!.text)];
  const rest = after.startsWith(before) ? after.slice(before.length) : null;
  return rest !== null && /[\r\x08]/.test(rest) ? null : rest;
}

/**
 * Add lines to the stream that is the last output; JupyterLab's own way reads all of it again.
 *
 * Returns what has been added behind what will be saved, as the notebook itself says; '' if it does
 * not say that, or something else became of the text. To read the end of the whole text instead
 * would copy megabytes for each line, since JavaScript joins texts only when they are read.
 */
function addText(model: ICodeCellModel, text: string): string {
  const { outputs, sharedModel } = model;
  const place = outputs.length - 1;
  const stream = outputs.get(place).streamText!;
  const saved = (sharedModel as any).ymodel?.get('outputs')?.get(place)?.get('text');
  const at = saved?.length;
  const deltas: Facts[][] = [];
  const hear = (event: { delta: Facts[] }) => void deltas.push(event.delta);
  saved?.observe?.(hear);
  stream.insert(stream.text.length, text);
  saved?.unobserve?.(hear);
  (outputs as any)._streamIndex = stream.text.length; // where it goes on if the kernel says more
  const [first, last] = deltas.length === 1 ? deltas[0] : [];
  const added = at === 0 ? first : last;
  return (at === 0 || first?.retain === at) && typeof added?.insert === 'string' ? added.insert : '';
}
