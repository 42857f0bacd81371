import { expect, test, vi } from 'vitest';

import { keepColours, LongText } from '../src/streams';

// It needs a real page.
vi.mock('@jupyterlab/rendermime', () => ({}));

/** A page as far as a long text knows it: its parts, in their order. */
function makePage() {
  const parts: { text: string; remove: () => void }[] = [];
  const drawn: string[] = [];
  const long = new LongText(async text => {
    await null;
    const part = { text, remove: () => void parts.splice(parts.indexOf(part), 1) };
    parts.push(part);
    drawn.push(text);
    return part;
  });
  const read = () => parts.map(part => part.text).join('');
  return { long, parts, drawn, read };
}

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}\n`).join('');

test('a long text is drawn in parts that end behind a line', async () => {
  const { long, parts, read } = makePage();
  await long.show(lines(50_000));
  expect(read()).toBe(lines(50_000));
  expect(parts.length).toBeGreaterThan(10);
  expect(parts.every(part => part.text.endsWith('\n') && part.text.length < 40_000)).toBe(true);
});

test('of a text that grows only the end is drawn again', async () => {
  const { long, drawn, read } = makePage();
  await long.show(lines(50_000));
  drawn.length = 0;
  await long.show(lines(50_000) + 'more');
  expect(read()).toBe(lines(50_000) + 'more');
  expect(drawn.length).toBe(1);
});

test('a last line that is written over takes nothing else with it', async () => {
  const { long, drawn, read } = makePage();
  await long.show(lines(50_000) + '10 %');
  drawn.length = 0;
  await long.show(lines(50_000) + '20 %');
  expect(read()).toBe(lines(50_000) + '20 %');
  expect(drawn.length).toBe(1);
});

test('another text takes the place of the first, also while that is drawn', async () => {
  const { long, read } = makePage();
  const first = long.show(lines(50_000));
  await long.show(lines(30_000).toUpperCase());
  await first;
  expect(read()).toBe(lines(30_000).toUpperCase());
});

test('a text that grows while it is drawn is drawn to its end', async () => {
  const { long, read } = makePage();
  const first = long.show(lines(50_000));
  void long.show(lines(60_000));
  await first;
  expect(read()).toBe(lines(60_000));
});

test('a text that is stopped leaves nothing behind', async () => {
  const { long, parts } = makePage();
  const work = long.show(lines(50_000));
  long.stop();
  await work;
  expect(parts).toEqual([]);
});

test('colours go on from one part to the next', async () => {
  const { long, parts } = makePage();
  await long.show('\x1b[1;31m' + lines(10_000) + '\x1b[0m' + lines(10_000));
  const starts = parts.map(part => part.text.startsWith('\x1b['));
  expect(starts[1]).toBe(true);
  expect(starts[starts.length - 1]).toBe(false);
  expect(parts[1].text.startsWith('\x1b[1m\x1b[31m')).toBe(true);
});

test.each([
  ['\x1b[31mred', '\x1b[31m'],
  ['\x1b[31mred\x1b[0m plain', ''],
  ['\x1b[31mred\x1b[m plain', ''],
  ['\x1b[31mred\x1b[32mgreen', '\x1b[32m'],
  ['\x1b[38;5;0;4mblack\x1b[48;2;1;0;3m', '\x1b[38;5;0m\x1b[4m\x1b[48;2;1;0;3m'],
  ['\x1b[31mred\x1b[39m'.repeat(1000), '\x1b[39m'],
  ['\x1b[0;1;7mloud\x1b[22m', '\x1b[22m\x1b[7m'],
  ['\x1b[2Kno colour', '']
])('the end of %j has %j', (text, colours) => {
  expect(keepColours(text)).toBe(colours);
});
