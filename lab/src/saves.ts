// Notebooks with long outputs, saved: JupyterLab writes all of one as one text, and the page stands still for it.
import { URLExt } from '@jupyterlab/coreutils';
import { Contents, Drive, ServerConnection } from '@jupyterlab/services';

import type { Facts } from './wire';

const LONG = 1_000_000; // characters of a stream; notebooks without such a one are left to JupyterLab
const PART = 200_000;
const SLICE = 16; // milliseconds of writing before the page may do something else
const NAME = 'cellwright-parts';

/** Let the drive of the Jupyter server write notebooks with long streams a part at a time. */
export function saveInParts(drive: Contents.IDrive): void {
  if (!(drive instanceof Drive)) {
    return; // another program keeps the files, in its own way
  }
  const { serverSettings } = drive;
  const saveInParts = async (path: string, model: Facts): Promise<Contents.IModel> => {
    const url = URLExt.join(serverSettings.baseUrl, 'api/contents', URLExt.encodeParts(path));
    const init = { method: 'PUT', body: await encode(model) };
    const response = await ServerConnection.makeRequest(url, init, serverSettings);
    if (!response.ok) {
      throw await ServerConnection.ResponseError.create(response);
    }
    return response.json();
  };
  const save = drive.save.bind(drive);
  drive.contentProviderRegistry.register(NAME, {
    get: (path, options) => drive.get(path, { ...options, contentProviderId: undefined }),
    save: (path, model = {}) => saveInParts(path, { ...model, contentProviderId: undefined })
  });
  drive.save = (path, model = {}) =>
    save(path, isLong(model) ? { ...model, contentProviderId: NAME } : model);
}

const isLongText = (text: unknown): text is string => typeof text === 'string' && text.length > LONG;

/** Whether a notebook has a long stream, and nobody else wants to save it. */
function isLong(model: Facts): boolean {
  const hasLong = (cell: Facts) => cell.outputs?.some((output: Facts) => isLongText(output.text));
  return model.type === 'notebook' && !model.contentProviderId && !!model.content?.cells?.some(hasLong);
}

/** The text that JupyterLab would send, as bytes. */
async function encode(model: Facts): Promise<Blob> {
  const encoder = new TextEncoder();
  const parts: Uint8Array[] = [];
  let began = performance.now();
  for (const text of writeParts(model)) {
    parts.push(encoder.encode(text));
    // A page that is not seen has no frame to miss, and its timers may wait for a minute.
    if (!document.hidden && performance.now() - began > SLICE) {
      await new Promise(later => setTimeout(later));
      began = performance.now();
    }
  }
  return new Blob(parts, { type: 'application/json' });
}

/** Write a value as JSON in parts, none of them long: long streams in its cells are cut. */
export function* writeParts({ content, ...rest }: Facts): Generator<string> {
  const { cells, ...book } = content;
  let text = JSON.stringify({ ...rest, content: null }).slice(0, -'null}'.length) + '{"cells":[';
  for (const [index, cell] of cells.entries()) {
    text += index ? ',' : '';
    for (const part of writeCell(cell)) {
      text += part;
      if (text.length > PART) {
        yield text;
        text = '';
      }
    }
  }
  const end = JSON.stringify(book).slice(1);
  yield `${text}]${end === '}' ? '' : ','}${end}}`;
}

function* writeCell(cell: Facts): Generator<string> {
  if (!cell.outputs) {
    yield JSON.stringify(cell);
    return;
  }
  const { outputs, ...rest } = cell;
  yield `${JSON.stringify({ ...rest, outputs: null }).slice(0, -'null}'.length)}[`;
  for (const [index, output] of outputs.entries()) {
    yield index ? ',' : '';
    const { text, ...other } = output;
    if (isLongText(text)) {
      yield `${JSON.stringify({ ...other, text: '' }).slice(0, -'"}'.length)}`;
      for (let place = 0; place < text.length; place += PART) {
        yield JSON.stringify(text.slice(place, place + PART)).slice(1, -1);
      }
      yield '"}';
    } else {
      yield JSON.stringify(output);
    }
  }
  yield ']}';
}
