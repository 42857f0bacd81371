// What a model wrote, drawn as markdown. No HTML of it gets into the page, and nothing is fetched.
import { renderMarkdown, type IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { make } from './dom';

// A sign of Unicode's private use is put in the place of each `<`, so that the parser finds no tags.
const LESS = '\uE000';
const TAGS = new Set(
  (
    'a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i input kbd li mark ol p pre s span strong sub sup ' +
    'table tbody td tfoot th thead tr ul'
  ).split(' ')
);
// Diagrams would be drawn in the page itself, before we see them.
const DRAWN = /([`~]{3,}[ \t]*)mermaid/gi;
const CLASS = /^(?:language-[\w+#-]+|cm-[\w-]+|ͼ\w+|jp-[\w-]*[Cc]ode[\w-]*)$/u;
const ALIGN = new Set(['left', 'right', 'center']);

/** Whether an address may be a link: one of the web, which opens only by a click. */
export function isWebAddress(address: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s]+$/i.test(address);
}

/** Make HTML harmless: known tags without attributes; links of the web; pictures as links. */
export function cleanHtml(html: string): string {
  // Nothing runs and nothing is fetched in such a document.
  const parsed = new DOMParser().parseFromString(html, 'text/html');
  const clean = parsed.createElement('div');
  copyClean(parsed.body, clean);
  return clean.innerHTML;
}

function copyClean(from: Node, to: Element): void {
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) {
      to.append(child.textContent ?? '');
    } else if (child.nodeType === Node.ELEMENT_NODE) {
      copyElement(child as Element, to);
    }
  }
}

function copyElement(element: Element, to: Element): void {
  const document = to.ownerDocument;
  const tag = element.localName;
  if (tag === 'img') {
    const address = element.getAttribute('src') ?? '';
    const where = address.startsWith('data:') ? 'data' : address;
    const text = `${element.getAttribute('alt') || 'picture'} (${where})`;
    to.append(isWebAddress(address) ? makeLink(document, address, text) : text);
    return;
  }
  if (tag === 'a') {
    const address = element.getAttribute('href') ?? '';
    if (isWebAddress(address)) {
      const link = makeLink(document, address, '');
      copyClean(element, link);
      to.append(link);
    } else {
      copyClean(element, to);
      if (address && address !== element.textContent) {
        to.append(` (${address})`);
      }
    }
    return;
  }
  const isHtml = element.namespaceURI === 'http://www.w3.org/1999/xhtml';
  if (!TAGS.has(tag) || !isHtml) {
    to.append(element.outerHTML);
    return;
  }
  if (tag === 'input') {
    to.append(element.hasAttribute('checked') ? '☑ ' : '☐ ');
    return;
  }
  const made = document.createElement(tag);
  const classes = [...element.classList].filter(each => CLASS.test(each));
  if (classes.length) {
    made.className = classes.join(' ');
  }
  const align = element.getAttribute('align') ?? '';
  if (ALIGN.has(align)) {
    made.setAttribute('align', align);
  }
  copyClean(element, made);
  to.append(made);
}

function makeLink(document: Document, address: string, text: string): HTMLElement {
  const link = document.createElement('a');
  link.setAttribute('href', address);
  link.setAttribute('rel', 'noopener noreferrer');
  link.setAttribute('target', '_blank');
  link.setAttribute('title', address);
  link.append(text);
  return link;
}

/** Draws markdown with JupyterLab's own parser and typesetter. */
export class MarkdownView {
  constructor(private readonly rendermime: IRenderMimeRegistry) {}

  /** Draw into a node; formulas only when the text is whole, since typesetting takes long. */
  async draw(node: HTMLElement, text: string, isWhole: boolean): Promise<void> {
    const { markdownParser, latexTypesetter } = this.rendermime;
    const drawn = make('div');
    await renderMarkdown({
      host: drawn,
      source: text,
      trusted: false,
      sanitizer: { sanitize: cleanHtml },
      resolver: null,
      linkHandler: null,
      shouldTypeset: false,
      latexTypesetter: null,
      markdownParser: {
        render: async source => {
          const safe = source.replaceAll(LESS, '\uFFFD').replaceAll('<', LESS).replace(DRAWN, '$1text');
          const html = markdownParser ? await markdownParser.render(safe) : `<pre>${escape(safe)}</pre>`;
          return html.replaceAll(LESS, '&lt;');
        }
      }
    });
    drawn.querySelectorAll('[id]').forEach(each => each.removeAttribute('id'));
    node.replaceChildren(...drawn.childNodes);
    if (isWhole && latexTypesetter && /\$|\\\(|\\\[/.test(text)) {
      await latexTypesetter.typeset(node);
    }
    // JupyterLab and formulas have had their own ideas of links.
    for (const link of node.querySelectorAll('a')) {
      if (isWebAddress(link.getAttribute('href') ?? '')) {
        link.setAttribute('rel', 'noopener noreferrer');
        link.setAttribute('target', '_blank');
      } else {
        link.replaceWith(...link.childNodes);
      }
    }
  }
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
