import { expect, test, vi } from 'vitest';

import { findTables, showSeconds } from '../src/chat/cards';
import { findTrigger } from '../src/chat/choices';
import { Chats, Conversation, News } from '../src/chat/conversation';
import { findBlock } from '../src/chat/inline';
import { showCount, showUsage } from '../src/chat/messages';

// It needs a real page.
vi.mock('@jupyterlab/ui-components', () => ({ undoIcon: {} }));
vi.mock('@jupyterlab/apputils', () => ({ Clipboard: {} }));
vi.mock('../src/bars', () => ({ CellBars: class {}, makeDiff: () => undefined }));

/** A conversation, and what it says is new. */
function open(...turns: any[]) {
  const reopened: Conversation[] = [];
  const chats = { reopen: async (each: Conversation) => void reopened.push(each) };
  const conversation = new Conversation('c', chats as unknown as Chats);
  conversation.restore({ title: 't', mode: 'ask', model: 'm', turns, n: 0, running: null });
  const news: News[] = [];
  conversation.changed.connect((_, each) => news.push(each));
  return { conversation, news, reopened };
}

const asked = (prompt: string, more = {}) => ({ event: 'asked', prompt, files: [], tools: [], ...more });

test('events are taken once and in their order, and a gap is looked up', () => {
  const { conversation, news, reopened } = open();
  conversation.take(1, 1, asked('a'));
  conversation.take(2, 1, { event: 'text', text: 'x' });
  conversation.take(2, 1, { event: 'text', text: 'x' });
  expect(conversation.turns[0].events.map(each => each.event)).toEqual(['asked', 'text']);
  expect(news.map(each => each.what)).toEqual(['event', 'event']);
  conversation.take(4, 1, { event: 'text', text: 'z' });
  expect(reopened).toEqual([conversation]);
  expect(conversation.turns[0].events).toHaveLength(2);
});

test('a turn that is asked again takes the place of the old one and of all after it', () => {
  const { conversation, news } = open();
  conversation.take(1, 1, asked('a'));
  conversation.take(2, 2, asked('b'));
  conversation.take(3, 3, asked('c'));
  conversation.take(4, 4, asked('b, but better', { replaces: [2, 3] }));
  expect(conversation.turns.map(each => each.prompt)).toEqual(['a', 'b, but better']);
  expect(news.at(-1)).toEqual({ what: 'all' });
});

test('what is typed after @ and # is found up to the cursor', () => {
  expect(findTrigger('explain @sal', 12)).toEqual({ sign: '@', word: 'sal', start: 8 });
  expect(findTrigger('#get and more', 4)).toEqual({ sign: '#', word: 'get', start: 0 });
  expect(findTrigger('see @"first da', 14)).toEqual({ sign: '@', word: 'first da', start: 4 });
  expect(findTrigger('@sales.ipynb explain', 20)).toBeNull();
  expect(findTrigger('me@example', 10)).toBeNull();
});

test('the last block of an answer is the proposal, also while it grows', () => {
  expect(findBlock('Sure.')).toBeNull();
  expect(findBlock('Sure.\n```python\nx = 1\ny')).toBe('x = 1\ny');
  expect(findBlock('```\na\n```\nand\n```py\nb = 2\n```\n')).toBe('b = 2');
  expect(findBlock('````\n```\ninner\n```\n````')).toBe('```\ninner\n```');
  expect(findBlock('``` not code ```')).toBeNull();
  expect(findBlock('```\nx = 1\n')).toBe('x = 1');
});

test('tables of markdown are found in results', () => {
  const text = 'Cell 2:\n| a | b |\n|---|---|\n| 1 | x \\| y |\n\n| no table |\nend';
  expect(findTables(text)).toEqual([
    [
      ['a', 'b'],
      ['1', 'x | y']
    ]
  ]);
});

test('numbers are said in short', () => {
  expect(showUsage(undefined)).toBe('');
  expect(showUsage({ input: 1234, output: 5, cost: 0.0123 })).toBe('1.2k tokens in, 5 out · $0.0123');
  expect(showUsage({ input: 1, output: 0, cost: null })).toBe('1 tokens in, 0 out');
  expect([showCount(999), showSeconds(0.25), showSeconds(2)]).toEqual(['999', '250 ms', '2.0 s']);
});
