// Long texts that a cell prints, drawn in parts: JupyterLab draws the whole text for each new line.
import { IOutputModel, IRenderMimeRegistry, MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

const MIME_TYPES = ['application/vnd.jupyter.stdout', 'application/vnd.jupyter.stderr'];
const LONG = 200_000; // characters; what is shorter is left to JupyterLab
const PART = 16_000;
const SLICE = 8; // milliseconds of drawing before the page may do something else

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
  let stream: IOutputModel['streamText'];
  const note = (_: unknown, change: TextChange) => void long?.note(stream!.text, change);
  const follow = (next: IOutputModel['streamText']) => {
    stream?.changed.disconnect(note);
    stream = next;
    stream?.changed.connect(note);
  };
  const stop = () => {
    follow(undefined);
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
    const { streamText } = model as Partial<IOutputModel>;
    if (long && streamText && streamText === stream) {
      return long.work; // the stream itself says what is new
    }
    if (!long) {
      // Takes away what is there, and shows whether it is trusted.
      const clear = () => void drawWhole(new MimeModel({ trusted: model.trusted, data: { [mimeType]: '' } }));
      long = new LongText(makePart, clear);
    }
    follow(streamText);
    return long.show(text);
  };
  return renderer;
}

type TextChange = { type: string; start: number; value: string };
type Part = { put: () => void; remove: () => void };

/** A text of which only what is new is drawn, a little at a time. */
export class LongText {
  /** `makePart` draws a text aside; `clear` takes away what is there before the first is put. */
  constructor(
    private readonly makePart: (text: string) => Promise<Part>,
    private clear: (() => void) | null
  ) {}

  /** What is still to be drawn; resolves when all of it is there. */
  work: Promise<void> = Promise.resolve();

  /** Draw a text; resolves when all of it is there. */
  show(text: string): Promise<void> {
    if (!text.startsWith(this.text.slice(0, this.head))) {
      this.begin();
    }
    return this.go(text, text.slice(this.head));
  }

  /**
   * Draw a text that has just become another.
   *
   * One that grows is not read: JavaScript joins two texts when the result is first read, and to
   * copy megabytes for each new line makes so much garbage that the page stands still for it.
   */
  note(text: string, { type, start, value }: TextChange): Promise<void> {
    const isLonger = type === 'insert' && start === this.text.length;
    return isLonger && text.length === start + value.length
      ? this.go(text, this.rest + value)
      : this.show(text);
  }

  /** Draw no more. */
  stop(): void {
    this.begin();
    this.dropOld();
    this.clear = null;
    this.text = this.rest = '';
  }

  private go(text: string, rest: string): Promise<void> {
    this.text = text;
    this.rest = rest;
    if (!this.isDrawing) {
      this.isDrawing = true;
      this.work = this.draw().finally(() => (this.isDrawing = false));
    }
    return this.work;
  }

  private async draw(): Promise<void> {
    let began = performance.now();
    while (this.shown !== this.rest) {
      const { rest, turn } = this;
      const end = findEnd(rest);
      const shown = rest.slice(0, end);
      const source = this.colours + shown;
      const part = await this.makePart(source);
      if (turn !== this.turn || !this.rest.startsWith(shown)) {
        continue; // it is another text now
      }
      this.last?.remove();
      this.last = null;
      if (end < rest.length) {
        this.head += end;
        this.rest = this.rest.slice(end);
        this.shown = '';
        this.colours = keepColours(source);
        this.parts.push(part);
      } else {
        this.shown = shown;
        this.last = part;
      }
      if (!this.isAside) {
        part.put();
      } else if (this.head + this.shown.length >= LONG || end === rest.length) {
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
    this.turn++;
    this.head = 0;
    this.shown = this.colours = '';
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
  private head = 0; // so much of it is in parts that stay
  private rest = ''; // what is behind the head
  private shown = ''; // as much of the rest as is drawn, in the last part
  private colours = ''; // that are on behind the head
  private turn = 0; // grows with each text that does not go on with the one before
  private last: Part | null = null; // behind the head; it may still grow, or be written over
  private isDrawing = false;
  private isAside = true;
  private readonly parts: Part[] = [];
  private readonly old: Part[] = []; // of the text before, still shown
}

/** Where the first part of a text ends: behind a line, or with the text. */
function findEnd(text: string): number {
  const line = text.indexOf('\n', PART);
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
