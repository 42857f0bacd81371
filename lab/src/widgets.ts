// Widgets of cells that agents run: shown as those of the person's own runs are.
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';

import type { Facts } from './wire';

const VIEW = 'application/vnd.jupyter.widget-view+json';

/**
 * Lets a view be shown whose output is not trusted, if its model came from a run just now.
 *
 * All else of that output stays as untrusted as it is, and so do widgets that a file has.
 */
export class LiveWidgets {
  constructor(private readonly panel: NotebookPanel) {}

  /** Note outputs of a run, before they are put into their cell. */
  admit(outputs: Facts[]): void {
    for (const output of outputs) {
      const model = output.data?.[VIEW]?.model_id;
      if (typeof model === 'string') {
        this.models.add(model);
        this.guard();
      }
    }
  }

  /** Stand before the renderer that the widget manager has put there. */
  private guard(): void {
    const { rendermime } = this.panel.content;
    const shown = rendermime.getFactory(VIEW);
    if (!shown || shown.safe) {
      return; // there are no widgets here, or the guard is there already
    }
    const choose = (options: IRenderMime.IRendererOptions, model: IRenderMime.IMimeModel) => {
      const view = model.data[VIEW] as Facts | undefined;
      const isShown = model.trusted || this.models.has(view?.model_id);
      return isShown ? shown.createRenderer(options) : rendermime.createRenderer('text/plain');
    };
    const createRenderer = (options: IRenderMime.IRendererOptions) =>
      new GuardedView(model => choose(options, model));
    const guard = { ...shown, safe: true, createRenderer };
    guarded.set(guard, shown);
    rendermime.addFactory(guard, -10);
  }

  private readonly models = new Set<string>();
}

const guarded = new WeakMap<IRenderMime.IRendererFactory, IRenderMime.IRendererFactory>();

/**
 * Let the view of a notebook go when it is closed.
 *
 * ipywidgets keeps the manager of each kernel for ever, and the manager the view, to log what no one
 * else takes: all cells of all notebooks that were ever open. Each collection of garbage goes through
 * them, and the page stands still meanwhile. `listOthers` are those that may use the same manager.
 */
export function letGoWhenClosed(panel: NotebookPanel, listOthers: () => Iterable<Widget>): void {
  const { rendermime } = panel.content;
  const letGo = async () => {
    const manager = await findManager(rendermime);
    const others = [...listOthers()].filter(each => each !== panel && !each.isDisposed) as any[];
    const used = await Promise.all(
      others.map(each => findManager((each.console ?? each.content)?.rendermime))
    );
    if (manager && !used.includes(manager)) {
      Signal.disconnectSender(manager);
    }
  };
  panel.disposed.connect(() => void letGo().catch(() => undefined));
}

/** The widget manager that draws the widgets of a view; null if it has none yet. */
async function findManager(rendermime: IRenderMimeRegistry | undefined): Promise<object | null> {
  const factory = rendermime?.getFactory?.(VIEW);
  const drawing = factory && (guarded.get(factory) ?? factory);
  const view: any = drawing?.createRenderer({ mimeType: VIEW } as IRenderMime.IRendererOptions);
  const manager = await Promise.race([view?._manager?.promise, null]);
  view?.dispose();
  return manager ?? null;
}

/** Shows a model with a renderer that is chosen when the model is known. */
class GuardedView extends Panel implements IRenderMime.IRenderer {
  constructor(private readonly choose: (model: IRenderMime.IMimeModel) => IRenderMime.IRenderer) {
    super();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const renderer = this.choose(model);
    [...this.widgets].forEach(widget => widget.dispose());
    this.addWidget(renderer);
    await renderer.renderModel(model);
  }
}
