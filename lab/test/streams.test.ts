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

/** How long the longest text is that something reads, other than its length. */
async function findLongestRead(act: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const names = ['startsWith', 'endsWith', 'slice', 'indexOf', 'includes', 'matchAll', 'split'] as const;
  const spies = names.map(name => {
    const real: any = String.prototype[name];
    return vi.spyOn(String.prototype, name).mockImplementation(function (this: string, ...words: any[]) {
      longest = Math.max(longest, this.length);
      return real.apply(this, words);
    } as any);
  });
  await act();
  spies.forEach(spy => spy.mockRestore());
  return longest;
}

test('a text that grows is not read again: to join megabytes for each line makes garbage', async () => {
  const { long, parts, drawn, read } = makePage();
  let text = lines(100_000);
  await long.show(text);
  const [first, count] = [parts[0], drawn.length];
  const longest = await findLongestRead(async () => {
    for (let number = 0; number < 100; number++) {
      const value = `more ${number}\n`;
      const start = text.length;
      text += value;
      await long.note(text, { type: 'insert', start, value });
    }
  });
  expect(longest).toBeLessThan(50_000);
  expect(read()).toBe(text);
  expect(drawn.length).toBe(count + 100);
  expect(parts[0]).toBe(first);
});

test.each([
  ['insert', 0, 'before\n', (text: string) => `before\n${text}`],
  ['insert', 14, 'between\n', (text: string) => `${text.slice(0, 14)}between\n${text.slice(14)}`],
  ['remove', 0, 'line 0\n', (text: string) => text.slice(7)],
  ['set', 0, '', (text: string) => text.toUpperCase()],
  ['insert', 648_890, 'but some is missing', (text: string) => text.toUpperCase() + '!']
])('a text that is changed by %s at %i is drawn as it is', async (type, start, value, change) => {
  const { long, read } = makePage();
  const text = lines(60_000);
  await long.show(text);
  await long.note(change(text), { type, start, value });
  expect(read()).toBe(change(text));
});

test('a text that grows while it is drawn, and then becomes another, is drawn as it is', async () => {
  const { long, read } = makePage();
  const text = lines(50_000);
  const first = long.show(text);
  void long.note(`${text}more\n`, { type: 'insert', start: text.length, value: 'more\n' });
  void long.note('x'.repeat(300_000), { type: 'set', start: 0, value: '' });
  void long.note(`${'x'.repeat(300_000)}\ny`, { type: 'insert', start: 300_000, value: '\ny' });
  await first;
  await long.work;
  expect(read()).toBe(`${'x'.repeat(300_000)}\ny`);
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
