// Long texts that a cell prints, drawn in parts: JupyterLab draws the whole text for each new line.
import { IRenderMimeRegistry, MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

const MIME_TYPES = ['application/vnd.jupyter.stdout', 'application/vnd.jupyter.stderr'];
const LONG = 200_000; // characters; what is shorter is left to JupyterLab
const PART = 16_000;
const SLICE = 16; // milliseconds of drawing before the page may do something else

/** Draw long streams in parts, with the renderers that the registry has now. */
export function drawLongStreams(registry: IRenderMimeRegistry): void {
  for (const mimeType of MIME_TYPES) {
    const factory = registry.getFactory(mimeType);
    if (factory) {
      const rank = registry.getRank(mimeType);
      const { safe, defaultRank } = factory;
      const createRenderer = (options: IRenderMime.IRendererOptions) => createLong(factory, options);
      registry.addFactory({ safe, defaultRank, mimeTypes: [mimeType], createRenderer }, rank);
    }
  }
}

/** The renderer of a factory, which draws a text in parts once it is long. */
function createLong(
  factory: IRenderMime.IRendererFactory,
  options: IRenderMime.IRendererOptions
): IRenderMime.IRenderer {
  const { mimeType } = options;
  const renderer = factory.createRenderer(options);
  const drawWhole = renderer.renderModel.bind(renderer);
  const makePart = async (text: string): Promise<Part> => {
    const part = factory.createRenderer(options);
    await part.renderModel(new MimeModel({ data: { [mimeType]: text } }));
    const node = document.createElement('div');
    node.className = 'cw-part';
    node.style.setProperty('--cw-lines', String(text.split('\n').length - 1 || 1));
    node.append(...part.node.childNodes);
    part.dispose();
    return { put: () => renderer.node.append(node), remove: () => node.remove() };
  };
  let long: LongText | null = null;
  const stop = () => {
    long?.stop();
    long = null;
  };
  renderer.disposed.connect(stop);
  renderer.renderModel = async model => {
    const text = String(model.data[mimeType]);
    if (text.length < LONG) {
      stop();
      return drawWhole(model);
    }
    if (!long) {
      // Takes away what is there, and shows whether it is trusted.
      const clear = () => void drawWhole(new MimeModel({ trusted: model.trusted, data: { [mimeType]: '' } }));
      long = new LongText(makePart, clear);
    }
    return long.show(text);
  };
  return renderer;
}

type Part = { put: () => void; remove: () => void };

/** A text of which only what is new is drawn, a little at a time. */
export class LongText {
  /** `makePart` draws a text aside; `clear` takes away what is there before the first is put. */
  constructor(
    private readonly makePart: (text: string) => Promise<Part>,
    private clear: (() => void) | null
  ) {}

  /** Draw a text; resolves when all of it is there. */
  show(text: string): Promise<void> {
    if (!text.startsWith(this.head)) {
      this.begin();
    }
    this.text = text;
    this.work ??= this.draw().finally(() => (this.work = null));
    return this.work;
  }

  /** Draw no more. */
  stop(): void {
    this.begin();
    this.dropOld();
    this.clear = null;
    this.text = '';
  }

  private async draw(): Promise<void> {
    let began = performance.now();
    while (this.shown !== this.text) {
      const { text, head } = this;
      const end = findEnd(text, head.length);
      const source = this.colours + text.slice(head.length, end);
      const part = await this.makePart(source);
      const shown = text.slice(0, end);
      if (head !== this.head || (text !== this.text && !this.text.startsWith(shown))) {
        continue; // it is another text now
      }
      this.last?.remove();
      this.last = null;
      this.shown = shown;
      if (end < text.length) {
        this.head = shown;
        this.colours = keepColours(source);
        this.parts.push(part);
      } else {
        this.last = part;
      }
      if (!this.isAside) {
        part.put();
      } else if (end >= LONG || end === text.length) {
        this.replaceOld();
      }
      if (performance.now() - began > SLICE) {
        await new Promise(later => setTimeout(later));
        began = performance.now();
      }
    }
  }

  /** Begin with another text, aside: what is shown stays until there is enough of the new one. */
  private begin(): void {
    this.old.push(...this.parts.splice(0), ...(this.last ? [this.last] : []));
    this.last = null;
    this.isAside = true;
    this.head = this.shown = this.colours = '';
  }

  /** Show what was drawn aside in place of what was there, at once, so that nothing jumps. */
  private replaceOld(): void {
    this.dropOld();
    this.clear?.();
    this.clear = null;
    this.isAside = false;
    [...this.parts, ...(this.last ? [this.last] : [])].forEach(part => part.put());
  }

  private dropOld(): void {
    this.old.splice(0).forEach(part => part.remove());
  }

  private text = '';
  private shown = ''; // as much of it as is drawn
  private head = ''; // as much of it as is in parts that stay
  private colours = ''; // that are on behind the head
  private last: Part | null = null; // behind the head; it may still grow, or be written over
  private work: Promise<void> | null = null;
  private isAside = true;
  private readonly parts: Part[] = [];
  private readonly old: Part[] = []; // of the text before, still shown
}

/** Where the part ends that begins at a place: behind a line, or with the text. */
function findEnd(text: string, start: number): number {
  const line = text.indexOf('\n', start + PART);
  return line < 0 ? text.length : line + 1;
}

const STYLES = [/^(3|9)\d$/, /^(4|10)\d$/, /^([15]|2[12])$/, /^2?4$/, /^2?7$/]; // colours, bold, …

/** The colours and styles (codes of a terminal) that are on at the end of a text. */
export function keepColours(text: string): string {
  const last = new Map<number, string>();
  for (const [, codes] of text.matchAll(/\x1b\[([\d;]*)m/g)) {
    const rest = codes.split(';').map(code => String(Number(code)));
    while (rest.length) {
      const code = rest.shift()!;
      if (code === '0') {
        last.clear();
      }
      const isLong = code === '38' || code === '48'; // the colour follows: 5;n or 2;r;g;b
      const more = isLong ? rest.splice(0, rest[0] === '5' ? 2 : 4) : [];
      const style = STYLES.findIndex(each => each.test(code));
      if (style >= 0) {
        last.set(style, [code, ...more].join(';'));
      }
    }
  }
  return [...last.values()].map(codes => `\x1b[${codes}m`).join('');
}
