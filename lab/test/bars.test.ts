import { expect, test, vi } from 'vitest';

import { makeVisible } from '../src/bars';

// It needs a real page.
vi.mock('@lumino/widgets', () => ({ Widget: class {} }));

test('what is hidden in a text is shown', () => {
  expect(makeVisible('mcp:\u202eadmin\u202c')).toBe('mcp:<U+202E>admin<U+202C>');
  expect(makeVisible('a\u200bb\u2066c\u061cd\ufeffe\u00adf')).toBe(
    'a<U+200B>b<U+2066>c<U+061C>d<U+FEFF>e<U+00AD>f'
  );
  expect(makeVisible('\u0000\u001b[31m\u0085\u2028\u3164\u115f')).toBe(
    '<U+0000><U+001B>[31m<U+0085><U+2028><U+3164><U+115F>'
  );
  expect(makeVisible('tag\u{e0061}\u{f0000}\ud800x')).toBe('tag<U+E0061><U+F0000><U+D800>x');
  expect(makeVisible('a\rb\u200dc\ufe0f')).toBe('a<U+000D>b<U+200D>c<U+FE0F>');
});

test('what people write stays as it is', () => {
  for (const text of ['x = 1\n\ty = 2', 'Grüße, 你好', '👩‍👩‍👧 ❤️ 1️⃣ 👍🏽', 'می‌خواهم', 'क्‍ष', 'é']) {
    expect(makeVisible(text)).toBe(text);
  }
  expect(makeVisible('a\r\nb')).toBe('a\nb');
});
