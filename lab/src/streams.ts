// Long texts that a cell prints, drawn in parts: JupyterLab draws the whole text for each new line.
import { IRenderMimeRegistry, MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

const MIME_TYPES = ['application/vnd.jupyter.stdout', 'application/vnd.jupyter.stderr'];
const LONG = 200_000; // characters; what is shorter is left to JupyterLab
const PART = 32_000;
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
  const addPart = async (text: string): Promise<Part> => {
    const part = factory.createRenderer(options);
    await part.renderModel(new MimeModel({ data: { [mimeType]: text } }));
    const node = document.createElement('div');
    node.className = 'cw-part';
    node.style.setProperty('--cw-lines', String(text.split('\n').length - 1 || 1));
    node.append(...part.node.childNodes);
    part.dispose();
    renderer.node.append(node);
    return node;
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
      long = new LongText(addPart);
      // Takes away what is there, and shows whether it is trusted.
      void drawWhole(new MimeModel({ trusted: model.trusted, data: { [mimeType]: '' } }));
    }
    return long.show(text);
  };
  return renderer;
}

type Part = { remove: () => void };

/** A text of which only what is new is drawn, a little at a time. */
export class LongText {
  /** `addPart` draws a text behind all that is there. */
  constructor(private readonly addPart: (text: string) => Promise<Part>) {}

  /** Draw a text; resolves when all of it is there. */
  show(text: string): Promise<void> {
    if (!text.startsWith(this.head)) {
      this.clear();
    }
    this.text = text;
    this.work ??= this.draw().finally(() => (this.work = null));
    return this.work;
  }

  /** Draw no more. */
  stop(): void {
    this.clear();
    this.text = '';
  }

  private async draw(): Promise<void> {
    let began = performance.now();
    while (this.shown !== this.text) {
      const { text, head } = this;
      const end = findEnd(text, head.length);
      const source = this.colours + text.slice(head.length, end);
      const part = await this.addPart(source);
      const shown = text.slice(0, end);
      if (head !== this.head || (text !== this.text && !this.text.startsWith(shown))) {
        part.remove(); // it is another text now
        continue;
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
      // What was there before is replaced at once, so that nothing jumps.
      if (end >= LONG && performance.now() - began > SLICE) {
        await new Promise(later => setTimeout(later));
        began = performance.now();
      }
    }
  }

  private clear(): void {
    this.parts.splice(0).forEach(part => part.remove());
    this.last?.remove();
    this.last = null;
    this.head = this.shown = this.colours = '';
  }

  private text = '';
  private shown = ''; // as much of it as is drawn
  private head = ''; // as much of it as is in parts that stay
  private colours = ''; // that are on behind the head
  private last: Part | null = null; // behind the head; it may still grow, or be written over
  private work: Promise<void> | null = null;
  private readonly parts: Part[] = [];
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
