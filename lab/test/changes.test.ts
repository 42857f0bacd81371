import { expect, test } from 'vitest';

import { OpenChanges } from '../src/changes';

const event = (change: string | null, when: number, cells: string[], actor = 'mcp:a') => ({
  change,
  actor,
  when,
  cells,
  inserted: [] as string[]
});

test('a change is noted once, and one that is not on record is not', () => {
  const changes = new OpenChanges();
  expect(changes.add(event('1', 0, ['x']))?.id).toBe('1');
  expect(changes.add(event('1', 0, ['x']))).toBeUndefined();
  expect(changes.add(event(null, 0, ['x']))).toBeUndefined();
  expect(changes.list()).toEqual(['1']);
});

test('a turn is what one agent changed without a long pause', () => {
  const changes = new OpenChanges();
  changes.add(event('1', 0, ['x']));
  changes.add(event('2', 50, ['y']));
  changes.add(event('other', 60, ['y'], 'mcp:b'));
  changes.add(event('3', 100, ['x']));
  changes.add(event('4', 500, ['x']));
  expect(changes.listTurn('2')).toEqual(['1', '2', '3']);
  expect(changes.listTurn('4')).toEqual(['4']);
  expect(changes.listTurn('other')).toEqual(['other']);
  expect(changes.listTurn('unknown')).toEqual([]);
});

test('a change is open until each of its cells was decided about', () => {
  const changes = new OpenChanges();
  changes.add(event('1', 0, ['x', 'y']));
  changes.add(event('2', 1, ['x']));
  expect(changes.of('x').map(each => each.id)).toEqual(['1', '2']);
  expect(changes.close(['1', '2'], ['x'])).toEqual(['x']);
  expect(changes.list()).toEqual(['1']);
  expect(changes.close(['1'])).toEqual(['y']);
  expect(changes.list()).toEqual([]);
});
