import { expect, test, vi } from 'vitest';

import { keepColours, LongText } from '../src/streams';

// It needs a real page.
vi.mock('@jupyterlab/rendermime', () => ({}));

/** A page as far as a long text knows it: its parts, in their order. */
function makePage() {
  type Part = { text: string; put: () => void; remove: () => void };
  const parts: Part[] = [];
  const drawn: string[] = [];
  const before = { isThere: true };
  const make = async (text: string): Promise<Part> => {
    await null;
    const remove = () => void (parts.includes(part) && parts.splice(parts.indexOf(part), 1));
    const part: Part = { text, put: () => void parts.push(part), remove };
    drawn.push(text);
    return part;
  };
  const long = new LongText(make, () => (before.isThere = false));
  const read = () => parts.map(part => part.text).join('');
  return { long, parts, drawn, read, before };
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

test('what is there stays until a screen and more of the new text can take its place', async () => {
  const { long, parts, drawn, read, before } = makePage();
  const seen: [number, boolean, string][] = [];
  const look = setInterval(() => seen.push([parts.length, before.isThere, read().slice(0, 4)]));
  const slow = vi.spyOn(performance, 'now').mockImplementation(() => drawn.length * 100);
  await long.show(lines(50_000));
  const count = parts.length;
  drawn.length = 0;
  await long.show(lines(50_000).toUpperCase());
  slow.mockRestore();
  clearInterval(look);
  expect(seen.length).toBeGreaterThan(20); // it lets the page work between two parts
  for (const [shown, isBefore, start] of seen) {
    expect(isBefore ? shown === 0 : shown > 10, `${shown} parts`).toBe(true);
    expect(isBefore || start === 'line' || start === 'LINE').toBe(true);
  }
  expect(seen.some(([shown, , start]) => shown === count && start === 'line')).toBe(true);
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
