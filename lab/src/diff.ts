// Lines of two texts compared, for a person to see what became of a cell.

export type DiffLine = { sign: ' ' | '+' | '-'; text: string };

/** Beyond this many pairs of lines the middle is shown as replaced whole: a page must not wait. */
const MOST_PAIRS = 250_000;

/** What turns one text into another, line by line; those that stay are in it too. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [splitLines(before), splitLines(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) {
    start++;
  }
  let end = 0;
  const left = Math.min(old.length, now.length) - start;
  while (end < left && old[old.length - 1 - end] === now[now.length - 1 - end]) {
    end++;
  }
  const sign = (lines: string[], mark: DiffLine['sign']) => lines.map(text => ({ sign: mark, text }));
  return [
    ...sign(old.slice(0, start), ' '),
    ...diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...sign(old.slice(old.length - end), ' ')
  ];
}

const splitLines = (text: string): string[] => (text === '' ? [] : text.split('\n'));

/** Longest common subsequence; removed lines come before added ones. */
function diffMiddle(old: string[], now: string[]): DiffLine[] {
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  if (old.length * now.length <= MOST_PAIRS) {
    const common = countCommon(old, now);
    while (i < old.length && j < now.length) {
      if (old[i] === now[j]) {
        found.push({ sign: ' ', text: old[i] });
        i++;
        j++;
      } else if (common[i + 1][j] >= common[i][j + 1]) {
        found.push({ sign: '-', text: old[i++] });
      } else {
        found.push({ sign: '+', text: now[j++] });
      }
    }
  }
  old.slice(i).forEach(text => found.push({ sign: '-', text }));
  now.slice(j).forEach(text => found.push({ sign: '+', text }));
  return found;
}

/** How many lines two texts have in common from line i and line j on. */
function countCommon(old: string[], now: string[]): number[][] {
  const common = Array.from({ length: old.length + 1 }, () => new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      common[i][j] =
        old[i] === now[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  return common;
}

const CELL = /^@@ cell (.*) \((\w+), (?:was at )?index (\d+)(?: -> (\d+))?\) (\w+) @@$/u;

/** The lines of a notebook's diff; cells are counted from 1, as everywhere in a chat. */
export function readUnified(text: string): DiffLine[] {
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((line, at) => {
    const cell = CELL.exec(line);
    if (cell) {
      const [, name, type, from, to, kind] = cell;
      const place = to === undefined ? +from + 1 : `${+from + 1} → ${+to + 1}`;
      return { sign: ' ', text: `Cell ${place} (${name}, ${type}): ${kind}` };
    }
    // Deleted and added lines can look like the names of files, but not both of them and a title.
    const names = line.startsWith('+++ ') ? at - 1 : at;
    const isName = /^--- .*\n\+\+\+ .*\n@@ (?:cell|notebook) /.test(lines.slice(names, names + 3).join('\n'));
    if (isName || line.startsWith('@@')) {
      return { sign: ' ', text: line };
    }
    return { sign: line[0] === '+' || line[0] === '-' ? line[0] : ' ', text: line.slice(1) };
  });
}
