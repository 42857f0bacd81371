// The plugin of the assistant: a side panel, a chat in cells, and help with errors.
import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { LabIcon } from '@jupyterlab/ui-components';

import { Wire } from '../wire';
import { Chats, type Memory } from './conversation';
import { ActiveNotebook } from './editor';
import { ErrorOffers } from './errors';
import { CellChats } from './inline';
import { MarkdownView } from './markdown';
import type { Desk } from './messages';
import { ChatPanel } from './panel';

const icon = new LabIcon({
  name: 'cellwright:chat',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3" fill="#616161" d="M4 3h16a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H9l-5 4V5zm3 4v2h10V7zm0 4v2h7v-2z"/>
</svg>`
});

/** Where the pages of one server remember things. */
const REMEMBERED = 'cellwright';

export const chatPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cellwright-lab:chat',
  description: 'An assistant in a side panel and in cells.',
  autoStart: true,
  requires: [INotebookTracker, IRenderMimeRegistry],
  optional: [ISettingRegistry, ICommandPalette, ILayoutRestorer],
  activate: async (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    rendermime: IRenderMimeRegistry,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): Promise<void> => {
    const { serverSettings } = app.serviceManager;
    const place = (what: string): string => `${REMEMBERED}:${what}:${serverSettings.baseUrl}`;
    const memory: Memory = {
      get: what => window.localStorage.getItem(place(what)),
      set: (what, value) => window.localStorage.setItem(place(what), value)
    };
    const wire: Wire = new Wire(serverSettings, (method, params) => chats.hear(method, params), 'chat');
    const chats = new Chats(wire, memory);
    const editor = new ActiveNotebook(app, tracker);
    const desk: Desk = {
      editor,
      markdown: new MarkdownView(rendermime),
      report: error => panel.say(error),
      accepted: edits =>
        edits.forEach(edit => {
          void app.commands.execute('cellwright:accept', edit).catch(() => undefined); // no tabs are shared
        })
    };
    let settings: ISettingRegistry.ISettings | null = null;
    const isSet = (name: string): boolean => settings?.composite[name] !== false;
    const follow = {
      get: () => isSet('follow'),
      set: (isOn: boolean) => void settings?.set('follow', isOn)
    };
    const panel: ChatPanel = new ChatPanel(chats, desk, follow);
    panel.title.icon = icon;
    panel.title.caption = 'Cellwright assistant (Ctrl Alt J)';
    restorer?.add(panel, panel.id);
    app.shell.add(panel, 'right', { rank: 900, type: 'Cellwright' });

    const openPanel = (): void => {
      app.shell.activateById(panel.id);
    };
    const inCells = new Map<NotebookPanel, CellChats>();
    const offers = new Map<NotebookPanel, ErrorOffers>();

    const explain = (book: NotebookPanel, cell: Cell, error: string): void => {
      const path = book.context.path;
      const number = editor.findNumber(path, cell.model.id);
      openPanel();
      void panel.ask(`Explain the error of cell ${number}: ${error}`, path);
    };
    const add = async (book: NotebookPanel): Promise<void> => {
      await book.context.ready;
      if (book.isDisposed || inCells.has(book)) {
        return;
      }
      const chatsHere = new CellChats(book, chats, desk);
      inCells.set(book, chatsHere);
      offers.set(
        book,
        new ErrorOffers(book, {
          isOn: () => isSet('errors'),
          explain: (cell, error) => explain(book, cell, error),
          fix: (cell, error) => chatsHere.open(cell, `Fix the error of this cell: ${error}`)
        })
      );
      book.disposed.connect(() => {
        inCells.delete(book);
        offers.delete(book);
      });
    };
    tracker.widgetAdded.connect((_, book) => void add(book));
    tracker.forEach(book => void add(book));

    app.commands.addCommand('cellwright:open-chat', {
      label: 'Open the assistant',
      caption: 'Ask about notebooks, or have them changed and run',
      icon,
      execute: openPanel
    });
    app.commands.addCommand('cellwright:cell-chat', {
      label: 'Ask the assistant about this cell',
      caption: 'Ask the assistant to change this cell',
      icon,
      isEnabled: () => !!editor.panel?.content.activeCell,
      execute: () => {
        const cell = editor.panel?.content.activeCell;
        if (cell) {
          inCells.get(editor.panel!)?.open(cell);
        }
      }
    });
    for (const command of ['cellwright:open-chat', 'cellwright:cell-chat']) {
      palette?.addItem({ command, category: 'Cellwright' });
    }

    settings = (await registry?.load(chatPlugin.id).catch(() => null)) ?? null;
    settings?.changed.connect(() => {
      panel.drawFollow();
      offers.forEach(each => each.note());
    });
    panel.drawFollow();
  }
};
