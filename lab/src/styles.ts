// The styles of editors: CodeMirror writes all of them anew for each new editor, though they are the same.

/** The letter by which the classes of CodeMirror begin. */
const MARK = '\u037c';

const content = Object.getOwnPropertyDescriptor(Node.prototype, 'textContent')!;

/**
 * Write the same styles of editors once only.
 *
 * Each time the browser looks at the whole page again: in a notebook of a thousand cells, that is
 * most of what a new cell costs.
 */
export function keepEditorStyles(head: HTMLHeadElement): void {
  const look = (nodes: Iterable<Node>) => {
    for (const node of nodes) {
      if (node instanceof HTMLStyleElement && node.textContent?.includes(MARK)) {
        keep(node);
      }
    }
  };
  look(head.children);
  new MutationObserver(records => records.forEach(each => look(each.addedNodes))).observe(head, {
    childList: true
  });
}

function keep(node: HTMLStyleElement): void {
  Object.defineProperty(node, 'textContent', {
    configurable: true,
    get: () => content.get!.call(node),
    set: (text: string) => {
      if (text !== content.get!.call(node)) {
        content.set!.call(node, text);
      }
    }
  });
}
