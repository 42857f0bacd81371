// The plugin: every open notebook is shared with the engine.
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { LiveTab } from './tab';
import { Facts, Wire } from './wire';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'cellwright-lab:live',
  description: 'Agents, terminals and people work in one open notebook.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ISettingRegistry],
  activate: async (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    registry: ISettingRegistry | null
  ): Promise<void> => {
    const settings = await registry?.load(plugin.id).catch(() => null);
    if (settings?.composite.share === false) {
      return;
    }
    const follows = () => settings?.composite.follow === true;
    const tabs = new Map<NotebookPanel, LiveTab>();

    const answer = async (method: string, params: Facts): Promise<Facts> => {
      const found = [...tabs.values()].find(tab => tab.path === params.path);
      if (!found) {
        throw new Error(`${params.path} is not open`);
      }
      return found.answer(method, params);
    };
    const wire = new Wire(app.serviceManager.serverSettings, answer);

    const add = async (panel: NotebookPanel): Promise<void> => {
      await panel.context.ready;
      if (panel.isDisposed || tabs.has(panel)) {
        return;
      }
      const isCurrent = () => tracker.currentWidget === panel;
      const { contents } = app.serviceManager;
      const tab = new LiveTab(panel, wire, contents, isCurrent, follows);
      tabs.set(panel, tab);
      panel.disposed.connect(() => tabs.delete(panel));
      if (wire.isOpen) {
        tab.register();
      }
    };

    wire.changed.connect((_, isOpen) => {
      if (isOpen) {
        tabs.forEach(tab => tab.register());
      }
    });
    tracker.widgetAdded.connect((_, panel) => void add(panel));
    tracker.forEach(panel => void add(panel));
    wire.connect();
  }
};

export default plugin;
