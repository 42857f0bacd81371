import { expect, test, vi } from 'vitest';

import { writeParts } from '../src/saves';

// They need a real page.
vi.mock('@jupyterlab/services', () => ({ Drive: class {}, ServerConnection: {} }));

const stream = (text: unknown) => ({ output_type: 'stream', name: 'stdout', text });
const code = (id: string, ...outputs: unknown[]) => ({ cell_type: 'code', id, source: 'x', outputs });
const makeModel = (...cells: unknown[]) => ({
  type: 'notebook',
  format: 'json',
  contentProviderId: undefined,
  content: { cells, metadata: { name: 'a "name"' }, nbformat: 4, nbformat_minor: 5 }
});

test('parts of a notebook are the notebook, whatever its streams say', () => {
  const strange = 'a "quote" \\ \u2028 \u0000 \x1b[31m é 漢 🎉\r\n';
  for (const shift of ['', 'x']) {
    const long = shift + '🎉'.repeat(700_000); // one is cut in two, with the shift or without it
    const model = makeModel(
      { cell_type: 'markdown', id: 'first', source: strange },
      code('none'),
      code('small', stream(strange), stream([strange, 'b']), { output_type: 'display_data', data: {} }),
      code('long', stream(strange.repeat(60_000)), stream(long), stream('end')),
      code('half', stream('\ud83c' + 'x'.repeat(1_200_000) + '\udf89'))
    );
    expect(JSON.parse([...writeParts(model)].join(''))).toEqual(JSON.parse(JSON.stringify(model)));
  }
});

test('no part of a notebook is much longer than the others, and all of them can be written as UTF-8', () => {
  const model = makeModel(
    code('a', stream('x'.repeat(3_000_000))),
    code('b', stream('🎉'.repeat(1_000_000)))
  );
  const parts = [...writeParts(model)];
  expect(Math.max(...parts.map(part => part.length))).toBeLessThan(500_000);
  const sent = parts.map(part => new TextDecoder().decode(new TextEncoder().encode(part))).join('');
  expect(sent).toBe(parts.join(''));
});

test('a notebook without cells, metadata and name is written too', () => {
  expect(JSON.parse([...writeParts({ content: { cells: [] } })].join(''))).toEqual({
    content: { cells: [] }
  });
});
