// The plugins: every open notebook is shared with the engine, and an assistant is there to ask.
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ContentsManager } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { chatPlugin } from './chat/plugin';
import type { PersonRuns } from './runs';
import { saveInParts } from './saves';
import { drawLongStreams } from './streams';
import { keepEditorStyles } from './styles';
import { LiveTab, TabSettings } from './tab';
import { letGoWhenClosed } from './widgets';
import { EngineError, Facts, Wire } from './wire';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'cellwright-lab:live',
  description: 'Agents, terminals and people work in one open notebook.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ISettingRegistry, ICommandPalette, IRenderMimeRegistry],
  activate: async (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    rendermime: IRenderMimeRegistry | null
  ): Promise<void> => {
    const settings = await registry?.load(plugin.id).catch(() => null);
    if (settings?.composite.share === false) {
      return;
    }
    if (rendermime) {
      drawLongStreams(rendermime);
    }
    keepEditorStyles(document.head);
    saveInParts((app.serviceManager.contents as ContentsManager).defaultDrive);
    const set: TabSettings = {
      follow: () => settings?.composite.follow === true,
      stale: () => settings?.composite.stale !== false
    };
    // One notebook may have several views in a page, which share all but where the person is.
    const tabs = new Map<NotebookPanel['context'], LiveTab>();
    const listViews = (context: NotebookPanel['context']) =>
      tracker.filter(panel => panel.context === context && !panel.isDisposed);

    const answer = async (method: string, params: Facts): Promise<Facts> => {
      const found = [...tabs.values()].find(tab => tab.path === params.path);
      if (!found) {
        throw new EngineError('NOT_OPEN', `${params.path} is not open`); // it was closed just now
      }
      return found.answer(method, params);
    };
    const wire = new Wire(app.serviceManager.serverSettings, answer);

    const add = async (panel: NotebookPanel): Promise<void> => {
      letGoWhenClosed(panel, () => app.shell.widgets('main'));
      await panel.context.ready;
      if (!panel.isDisposed) {
        share(panel);
      }
    };
    const share = (panel: NotebookPanel, runs?: PersonRuns): void => {
      const { context } = panel;
      if (tabs.has(context)) {
        tabs.get(context)!.presence.watch(panel);
        panel.disposed.connect(() => {
          const tab = tabs.get(context);
          if (tab && tab.panel !== panel) {
            tab.leave(panel); // it did not become the view of the tab meanwhile
          }
        });
        return;
      }
      const views = {
        list: () => listViews(context),
        current: () => listViews(context).find(view => view === tracker.currentWidget) ?? null
      };
      const tab = new LiveTab(panel, wire, views, set, runs);
      tabs.set(context, tab);
      panel.disposed.connect(() => {
        tabs.delete(context);
        views
          .list()
          .slice(0, 1)
          .forEach(other => share(other, tab.runs)); // at once: the engine may ask at any time
      });
      if (wire.isOpen) {
        tab.register();
      }
    };

    const addCommand = (name: string, label: string, act: (tab: LiveTab) => unknown): void => {
      const find = () => tracker.currentWidget && tabs.get(tracker.currentWidget.context);
      const command = `cellwright:${name}`;
      app.commands.addCommand(command, {
        label,
        isEnabled: () => wire.isOpen && !!find(),
        execute: () => {
          const tab = find();
          return tab && act(tab);
        }
      });
      palette?.addItem({ command, category: 'Cellwright' });
    };
    addCommand('run-stale', 'Run stale cells', tab => tab.runStale());
    addCommand('accept-all', 'Accept all changes of agents', tab => tab.review.acceptAll());
    addCommand('undo-all', 'Undo all changes of agents', tab => tab.review.undoAll());
    app.commands.addCommand('cellwright:accept', {
      label: 'Accept a change of an agent',
      isVisible: () => false, // for the chat in a cell, where the person has accepted it
      execute: ({ path, change, cells }) => {
        const tab = [...tabs.values()].find(each => each.path === path);
        tab?.review.accept([change as string], cells as string[]);
      }
    });
    app.commands.addCommand('cellwright:mark-stale', {
      label: 'Mark stale cells',
      isToggled: set.stale,
      isEnabled: () => !!settings,
      execute: () => settings?.set('stale', !set.stale())
    });
    palette?.addItem({ command: 'cellwright:mark-stale', category: 'Cellwright' });
    settings?.changed.connect(() => tabs.forEach(tab => tab.stale.note()));

    wire.changed.connect((_, isOpen) => {
      tabs.forEach(tab => (isOpen ? tab.register() : tab.lose()));
    });
    tracker.widgetAdded.connect((_, panel) => void add(panel));
    tracker.forEach(panel => void add(panel));
    wire.connect();
  }
};

export default [plugin, chatPlugin];
