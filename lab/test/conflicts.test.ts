import { expect, test, vi } from 'vitest';

import { Conflicts } from '../src/conflicts';

// They need a real page: here a bar is its buttons, by their text.
vi.mock('../src/bars', () => ({
  CellBars: class extends Map {
    constructor() {
      super();
    }
    keys = () => [...super.keys()] as any;
  },
  makeButton: (text: string, act: () => void) => ({ text, act }),
  makeText: () => ({}),
  makeBar: (_kind: string, _label: string, ...more: any[]) => more
}));

const conflict = { cell: 'a', current: 'mine', other: 'theirs' };

function open() {
  const context = {
    contentsModel: { path: 'nb.ipynb', hash: 'opened' },
    _updateContentsModel(model: any) {
      this.contentsModel = model;
    }
  };
  const conflicts = new Conflicts({ context, content: { model: { sharedModel: { cells: [] } } } } as any);
  const keepMine = () => (conflicts as any).bars.get('a')[0].act();
  return { context, conflicts, keepMine };
}

test('once the person has chosen, the file is known at once: an agent may save right then', () => {
  const { context, conflicts, keepMine } = open();
  conflicts.show('merged', [conflict]);
  expect(context.contentsModel.hash).toBe('opened');
  conflicts.know('merged later'); // another change of the file, in other cells
  expect(context.contentsModel.hash).toBe('opened');
  keepMine();
  expect(context.contentsModel).toEqual({ path: 'nb.ipynb', hash: 'merged later' });
});

test('a file that was saved since is not taken for the one that was merged before', () => {
  const { context, conflicts, keepMine } = open();
  conflicts.show('merged', [conflict]);
  context.contentsModel.hash = 'saved'; // the person was asked, and wrote over it
  keepMine();
  expect(context.contentsModel.hash).toBe('saved');
});
