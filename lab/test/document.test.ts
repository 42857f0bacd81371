import { YNotebook } from '@jupyter/ydoc';
import { Signal } from '@lumino/signaling';
import { expect, test, vi } from 'vitest';

import { LiveDocument } from '../src/document';

// It needs a real page.
vi.mock('../src/widgets', () => ({
  LiveWidgets: class {
    admit() {}
  }
}));

/** A tab as far as a document knows it. */
function open(...sources: string[]) {
  const sharedModel = YNotebook.create({ disableDocumentWideUndoRedo: true });
  let noteSave: (state: string) => void = () => undefined;
  const signal = {
    connect: (slot: any, owner: any) => (noteSave = state => slot.call(owner, null, state)),
    disconnect: () => true
  };
  sources.forEach((source, index) =>
    sharedModel.insertCell(index, { cell_type: 'code', id: 'abcdef'[index], source })
  );
  const models = { get: (index: number) => makeModel(sharedModel.cells[index]) };
  const panel: any = {
    content: { model: { sharedModel, cells: models }, widgets: [], activeCell: null, mode: 'command' },
    context: Object.assign(Object.create({ save: () => panel.save() }), {
      saveState: signal,
      fileChanged: new Signal<any, any>({}),
      model: { dirty: false },
      contentsModel: { hash: 'h' }
    }),
    save: async (): Promise<void> => undefined
  };
  const document = new LiveDocument(panel as any, () => false);
  const sourcesNow = () => sharedModel.cells.map(cell => cell.getSource());
  return { document, sharedModel, sourcesNow, panel, noteSave: (state: string) => noteSave(state) };
}

/** A cell as JupyterLab keeps it beside the shared one, as far as outputs grow. */
function makeModel(shared: any) {
  const texts = () => shared.getOutputs().map((output: any) => output.text);
  return {
    sharedModel: shared,
    executionCount: shared.execution_count,
    outputs: {
      get length() {
        return texts().length;
      },
      get: (index: number) => ({
        streamText: {
          get text() {
            return texts()[index];
          },
          insert: (_: number, text: string) => shared.appendStreamOutput(index, text)
        }
      })
    }
  };
}

const change = (document: LiveDocument, edits: any[], request = String(Math.random())) =>
  document.change(document.version, edits, request, false);

test('the next view of a notebook tells all of it to an engine that knows the view before', () => {
  const { document, panel, sharedModel } = open('1', '2');
  change(document, [{ edit: 'source', cell: 'a', splices: [{ start: 1, end: 1, text: '!' }] }]);
  const known = document.version;
  document.dispose();
  vi.setSystemTime(Date.now() + 1_000);
  sharedModel.cells[1].setSource('typed between the views');
  const next = new LiveDocument(panel, () => false).read(known);
  expect(next.cells.map((cell: any) => cell.source)).toEqual(['1!', 'typed between the views']);
  expect(next.order).toEqual(['a', 'b']);
  expect(next.metadata).toBeDefined();
  vi.useRealTimers();
});

test('a save waits for the one before it, also for one that fails', async () => {
  const { document, panel } = open();
  const begun: { succeed: () => void; fail: (reason: Error) => void }[] = [];
  panel.save = () => new Promise((succeed, fail) => begun.push({ succeed, fail }));
  const saves = [1, 2, 3].map(() => panel.context.save());
  await vi.waitFor(() => expect(begun.length).toBe(1));
  begun[0].fail(new Error('the person cancelled it'));
  await expect(saves[0]).rejects.toThrow('cancelled');
  await vi.waitFor(() => expect(begun.length).toBe(2));
  begun[1].succeed();
  await saves[1];
  await vi.waitFor(() => expect(begun.length).toBe(3));
  begun[2].succeed();
  await saves[2];
  document.dispose();
  expect(Object.keys(panel.context)).not.toContain('save');
});

test('outputs that JupyterLab adds by itself are read, and keep no edit from being applied', () => {
  const { document, sharedModel, sourcesNow } = open('1', '2');
  const since = document.version;
  const output = { output_type: 'stream', name: 'stdout', text: 'said' };
  (sharedModel.cells[1] as any).updateOutputs(0, 0, [output], 'silent-change');
  expect(document.read(since).cells.map((cell: any) => cell.outputs)).toEqual([[output]]);
  const edit = { edit: 'source', cell: 'b', splices: [{ start: 0, end: 1, text: 'two' }] };
  expect(document.change(since, [edit], 'r', false).applied).toBe(true);
  expect(sourcesNow()).toEqual(['1', 'two']);
});

test('only what is new travels', () => {
  const { document, sharedModel } = open('1', '2');
  const all = document.read(-1);
  expect(all.order).toEqual(['a', 'b']);
  sharedModel.cells[1].setSource('two');
  const news = document.read(all.version);
  expect(news.cells.map((cell: any) => [cell.id, cell.source])).toEqual([['b', 'two']]);
  expect(news.order).toBeUndefined();
});

test('what was saved is told as news, without what was typed while it was being saved', () => {
  const { document, sharedModel, panel, noteSave } = open('1', '2');
  const { version } = document.read(-1);
  sharedModel.cells[0].setSource('saved');
  noteSave('started');
  sharedModel.cells[0].setSource('typed meanwhile');
  document.read(version); // an agent looks: the news are still about what was read before
  panel.context.contentsModel = { hash: 'of the file' };
  noteSave('completed');
  const news = document.saved!;
  expect(news.cells.map((cell: any) => cell.source)).toEqual(['saved']);
  expect([news.since, news.hash, news.dirty]).toEqual([version, 'of the file', false]);
  expect(news.version).toBeLessThan(document.version);
});

test('a notebook that is renamed has the file that it knew last, though JupyterLab forgets that', () => {
  const { document, panel } = open('1');
  expect(document.read(-1).hash).toBe('h');
  for (const hash of ['merged', null]) {
    panel.context.contentsModel = { hash };
    panel.context.fileChanged.emit(panel.context.contentsModel);
  }
  expect(document.read(-1).hash).toBe('merged');
});

test('what changes while a notebook is saved is still to be saved', () => {
  const { document, sharedModel, panel, noteSave } = open('1');
  const { model } = panel.context;
  const save = (meanwhile: () => void) => {
    noteSave('started');
    expect(document.read(-1).saving).toBe(true);
    meanwhile();
    model.dirty = false; // JupyterLab does, whatever was typed
    sharedModel.setState('dirty', false); // and it notes more of this kind
    sharedModel.setState('hash', String(Math.random()));
    noteSave('completed');
    return model.dirty;
  };
  expect(save(() => sharedModel.cells[0].setSource('typed'))).toBe(true);
  expect(save(() => undefined)).toBe(false);
  expect(document.read(-1).saving).toBe(false);
  noteSave('started');
  noteSave('failed');
  expect(model.dirty).toBe(true);
});

test('a save that a person cancelled does not keep others from saving', async () => {
  vi.useFakeTimers();
  const { document, noteSave } = open('1');
  noteSave('started'); // and JupyterLab never says that it has ended
  expect(document.read(-1).saving).toBe(true);
  vi.advanceTimersByTime(5_000);
  expect(document.read(-1).saving).toBe(false);
  vi.useRealTimers();
});

test('an edit of a cell that has changed since is refused, and so is the whole change', () => {
  const { document, sharedModel, sourcesNow } = open('1', '2');
  const since = document.read(-1).version;
  sharedModel.cells[0].setSource('typed');
  const edits = [
    { edit: 'delete', cell: 'b' },
    { edit: 'source', cell: 'a', splices: [{ start: 0, end: 1, text: 'agent' }] }
  ];
  expect(document.change(since, edits, 'r', false).applied).toBe(false);
  expect(sourcesNow()).toEqual(['typed', '2']);
});

test('a request that comes twice is carried out once', () => {
  const { document, sourcesNow } = open('1');
  const edits = [{ edit: 'insert', after: 'a', cell: { cell_type: 'code', id: 'n', source: ['2\n', '3'] } }];
  const first = change(document, edits, 'same');
  expect(change(document, edits, 'same')).toBe(first);
  expect(sourcesNow()).toEqual(['1', '2\n3']);
});

test('an edit of a source is one step back, and the steps of the person stay', () => {
  const { document, sharedModel, sourcesNow } = open('x = 1');
  const [cell] = sharedModel.cells;
  cell.updateSource(5, 5, '0');
  const splices = [
    { start: 0, end: 1, text: 'yy' },
    { start: 6, end: 6, text: '!' }
  ];
  change(document, [{ edit: 'source', cell: 'a', splices }]);
  expect(sourcesNow()).toEqual(['yy = 10!']);
  cell.undo();
  expect(sourcesNow()).toEqual(['x = 10']);
});

test('of outputs that grow only what is new travels, and how much is there is said', () => {
  const { document, sharedModel } = open('1', '2');
  const stream = { output_type: 'stream', name: 'stdout', text: 'one €\n' };
  (sharedModel.cells[0] as any).setOutputs([stream]);
  const grow = { edit: 'grow', cell: 'a', kept: 1, at: 6, text: 'two\n', outputs: [], execution_count: null };
  const land = (edit: any) => document.change(document.version, [edit], String(Math.random()), true);
  const facts = land(grow);
  expect([facts.applied, facts.cells]).toEqual([true, []]);
  expect(facts.grown).toEqual([
    { id: 'a', outputs: 1, length: 10, tail: 'one €\ntwo\n', execution_count: null }
  ]);
  expect(document.read(facts.version).cells).toEqual([]);
  // It is not what the page has: then the engine sends all.
  expect(land(grow).applied).toBe(false);
  expect(land({ ...grow, at: 10, kept: 2 }).applied).toBe(false);
  expect((sharedModel.cells[0] as any).getOutputs()[0].text).toBe('one €\ntwo\n');
});

test('of a long text only what was added is read, and the rest when it is not clear what was', () => {
  const { document, sharedModel } = open('1');
  const [cell] = sharedModel.cells as any[];
  const long = 'one €\n'.repeat(50_000);
  cell.setOutputs([{ output_type: 'stream', name: 'stdout', text: long }]);
  const grow = { edit: 'grow', cell: 'a', kept: 1, at: long.length, outputs: [], execution_count: null };
  const land = (edit: any) => document.change(document.version, [edit], String(Math.random()), true).grown;
  const length = long.length + 4;
  const known = { id: 'a', outputs: 1, execution_count: null };
  expect(land({ ...grow, text: 'two\n' })).toEqual([{ ...known, length, tail: 'two\n' }]);
  const all = `${long}two\n`.slice(-100);
  expect(land({ ...grow, at: length, text: '' })).toEqual([{ ...known, length, tail: all }]);
  // An editor that makes something else of it says what is there.
  const append = cell.appendStreamOutput.bind(cell);
  cell.appendStreamOutput = (index: number, text: string) => append(index, text.toUpperCase());
  const loud = { ...known, length: length + 6, tail: 'THREE\n' };
  expect(land({ ...grow, at: length, text: 'three\n' })).toEqual([loud]);
  cell.appendStreamOutput = (index: number, text: string) => [...text].forEach(each => append(index, each));
  const tail = `${long}two\nTHREE\nfour\n`.slice(-100);
  expect(land({ ...grow, at: length + 6, text: 'four\n' })).toEqual([
    { ...known, length: length + 11, tail }
  ]);
});

test('cells are moved, replaced and deleted by their ids', () => {
  const { document, sourcesNow } = open('1', '2', '3');
  change(document, [
    { edit: 'delete', cell: 'b' },
    { edit: 'move', cell: 'c', after: null },
    { edit: 'replace', cell: { cell_type: 'markdown', id: 'a', source: 'text', metadata: {} } }
  ]);
  expect(sourcesNow()).toEqual(['3', 'text']);
});

test('what the page knows about trust stays when metadata are set', () => {
  const { document, sharedModel } = open('1');
  sharedModel.cells[0].setMetadata('trusted', true);
  change(document, [{ edit: 'metadata', cell: 'a', metadata: { tags: ['x'] } }]);
  expect(sharedModel.cells[0].getMetadata()).toEqual({ tags: ['x'], trusted: true });
});

test('cells come, go and are replaced in one transaction, which is one layout of the page', () => {
  const { document, sharedModel, sourcesNow } = open('1', '2', '3');
  let times = 0;
  sharedModel.changed.connect((_, { cellsChange }) => (times += cellsChange ? 1 : 0));
  const cell = (id: string, source: string) => ({ cell_type: 'code', id, source, metadata: {}, outputs: [] });
  change(document, [
    { edit: 'delete', cell: 'a' },
    { edit: 'insert', after: null, cell: cell('x', 'first') },
    { edit: 'insert', after: 'x', cell: cell('y', 'second') },
    { edit: 'replace', cell: cell('b', 'other') },
    { edit: 'insert', after: 'c', cell: cell('z', 'last') }
  ]);
  expect(sourcesNow()).toEqual(['first', 'second', 'other', '3', 'last']);
  expect(times).toBe(1);
  change(document, [
    { edit: 'move', cell: 'z', after: null },
    { edit: 'delete', cell: 'x' },
    { edit: 'move', cell: 'y', after: 'c' }
  ]);
  expect(sourcesNow()).toEqual(['last', 'other', '3', 'second']);
});

test('no edit makes a cell trusted, or a trusted one another', () => {
  const { document, sharedModel } = open('1', '2');
  sharedModel.cells[0].setMetadata({ trusted: true });
  const cell = {
    cell_type: 'code',
    id: 'n',
    source: '',
    metadata: { trusted: true, tags: ['x'] },
    outputs: []
  };
  change(document, [
    { edit: 'insert', after: 'b', cell },
    { edit: 'metadata', cell: 'a', metadata: { tags: [] } },
    { edit: 'metadata', cell: 'b', metadata: { trusted: true, tags: ['y'] } }
  ]);
  const found = sharedModel.cells.map(each => each.getMetadata());
  expect(found).toEqual([{ trusted: true, tags: [] }, { tags: ['y'] }, { tags: ['x'] }]);
});
