import { expect, test } from 'vitest';

import { diffLines, readUnified } from '../src/diff';

const show = (before: string, after: string) => diffLines(before, after).map(({ sign, text }) => sign + text);

test('lines that stay are shown between those that went and came', () => {
  expect(show('x = 1\nprint(x)', 'x = 2\nprint(x)\nx')).toEqual(['-x = 1', '+x = 2', ' print(x)', '+x']);
});

test('an empty text has no lines', () => {
  expect(show('', 'a\n')).toEqual(['+a', '+']);
  expect(show('a', '')).toEqual(['-a']);
  expect(show('', '')).toEqual([]);
});

test('either text can be read from the difference', () => {
  let seed = 1;
  const random = (most: number) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 300; round++) {
    const make = () => Array.from({ length: random(8) }, () => 'abc'[random(3)]).join('\n');
    const [before, after] = [make(), make()];
    const lines = diffLines(before, after);
    const keep = (signs: string) =>
      lines
        .filter(line => signs.includes(line.sign))
        .map(line => line.text)
        .join('\n');
    expect([keep(' -'), keep(' +')]).toEqual([before, after]);
  }
});

test('a very long text does not keep the page waiting', () => {
  const make = (word: string) => Array.from({ length: 20_000 }, (_, n) => word + n).join('\n');
  const began = performance.now();
  expect(diffLines(make('a'), make('b'))).toHaveLength(40_000);
  expect(performance.now() - began).toBeLessThan(5_000);
});

test('a diff of notebooks names cells as the chat does', () => {
  const diff = `--- a/nb.ipynb
+++ b/nb.ipynb
@@ cell c (code, index 2) edited @@
--- a comment of SQL
+++ another
@@ -7 +7 @@
 select
@@ cell d (raw, index 0 -> 4) moved @@
@@ cell e (markdown, was at index 1) deleted @@
-# Old
`;
  expect(readUnified(diff).map(({ sign, text }) => sign + text)).toEqual([
    ' --- a/nb.ipynb',
    ' +++ b/nb.ipynb',
    ' Cell 3 (c, code): edited',
    '--- a comment of SQL',
    '+++ another',
    ' @@ -7 +7 @@',
    ' select',
    ' Cell 1 → 5 (d, raw): moved',
    ' Cell 2 (e, markdown): deleted',
    '-# Old'
  ]);
});
