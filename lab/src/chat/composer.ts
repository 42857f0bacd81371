// Where a person writes: mode, model, attachments, the prompt, and what the model will see.
import { closeIcon } from '@jupyterlab/ui-components';

import type { Facts } from '../wire';
import { Choice, Choices, findTrigger, replaceTyped } from './choices';
import type { Chats, Conversation, Mode } from './conversation';
import { button, iconButton, keepFocus, make, newId } from './dom';
import { type Desk, drawPreview, showCount } from './messages';

const MODES: { mode: Mode; label: string; may: string }[] = [
  { mode: 'ask', label: 'Ask', may: 'It reads. It changes and runs nothing.' },
  { mode: 'edit', label: 'Edit', may: 'It reads, and writes code for you to insert. It runs nothing.' },
  {
    mode: 'agent',
    label: 'Agent',
    may: 'It reads, changes and runs cells; it asks before it runs or deletes.'
  }
];
const PAUSE = 150;
const OTHER = 'another';
const KEY = 'Enter its key once. It goes to the keyring on the server, and the page forgets it.';
/** The type of what is dragged from the file browser. */
const FILES = 'application/x-jupyter-icontents';

const isNotebook = (path: string): boolean => path.toLowerCase().endsWith('.ipynb');

/** The lower part of the panel. */
export class Composer {
  constructor(
    private readonly chats: Chats,
    private readonly desk: Desk
  ) {
    this.choices = new Choices(this.field, 'Files and tools');
    this.send = make('button', { type: 'submit', class: 'cw-button cw-main' }, 'Send');
    this.stop = button('Stop', () => void this.conversation?.call('stop').catch(desk.report), {
      class: 'cw-button cw-main'
    });
    this.node = make('form', {
      class: 'cw-composer',
      'aria-label': 'Ask the assistant',
      submit: (event: Event) => {
        event.preventDefault();
        void this.submit();
      }
    });
    this.attach = this.makeAttach();
    this.context = button('Context', () => void this.togglePreview(), {
      'aria-expanded': 'false',
      title: 'What the model will see'
    });
    this.models.addEventListener('change', () => void this.chooseModel());
    this.node.append(
      this.chips,
      this.look,
      make('div', { class: 'cw-field' }, this.choices.node, this.field),
      make('div', { class: 'cw-row' }, this.makeModes(), this.stop, this.send),
      this.may,
      make('div', { class: 'cw-row' }, this.attach.button, this.models, this.context),
      this.attach.node,
      this.noModel,
      this.modelForm,
      this.preview,
      this.note
    );
    this.listen();
    this.drawChips();
    this.drawState();
  }

  readonly node: HTMLElement;

  /** Show another conversation. */
  set(conversation: Conversation): void {
    this.conversation?.changed.disconnect(this.onChange, this);
    this.conversation = conversation;
    conversation.changed.connect(this.onChange, this);
    this.files = [...(conversation.turns.at(-1)?.files ?? [])];
    this.tools = [];
    this.hasSelection = true;
    this.drawState();
    this.drawChips();
    void this.loadModels();
  }

  focus(): void {
    this.field.focus();
  }

  /** Attach a notebook or a file. */
  addFile(path: string): void {
    if (!this.files.includes(path)) {
      this.files.push(path);
    }
    this.drawChips();
  }

  /** Send a prompt as if the person had typed it. */
  async ask(prompt: string): Promise<void> {
    this.field.value = prompt;
    await this.submit();
  }

  /** Put a prompt into the field, for the person to send, in a mode that can do it. */
  suggest(prompt: string, mode: Mode): void {
    this.field.value = prompt;
    this.resize();
    this.field.focus();
    this.setMode(mode);
    this.lookSoon();
  }

  /** What the next request would say. */
  describe(): Facts {
    const prompt = this.field.value;
    return {
      prompt,
      editor: this.desk.editor.describe(this.hasSelection),
      files: [...this.files],
      tools: [...this.tools]
    };
  }

  private async submit(): Promise<void> {
    const conversation = this.conversation;
    const request = this.describe();
    if (!conversation || !request.prompt.trim() || conversation.running !== null) {
      return;
    }
    this.say('');
    try {
      await conversation.call('send', request);
    } catch (error) {
      this.say((error as Error).message, (error as any).hint);
      return;
    }
    this.asked = request.prompt;
    if (this.field.value === request.prompt) {
      this.field.value = '';
    }
    this.tools = [];
    this.closePreview();
    this.resize();
    this.drawChips();
  }

  private listen(): void {
    this.desk.editor.moved.connect(() => {
      this.drawChips();
    });
    this.field.addEventListener('input', () => {
      this.resize();
      void this.complete();
      this.lookSoon();
    });
    this.field.addEventListener('blur', () => this.choices.hide());
    this.field.addEventListener('keydown', event => {
      if (this.choices.handleKey(event) || event.isComposing) {
        return;
      }
      if (event.key === 'Enter' && !event.shiftKey) {
        event.preventDefault();
        void this.submit();
      } else if (event.key === 'ArrowUp' && !this.field.value && this.asked) {
        event.preventDefault();
        this.field.value = this.asked;
      }
    });
  }

  /** Take files that are dragged from the file browser over a node. */
  takeDrops(node: HTMLElement): void {
    const read = (event: any): string[] => event.mimeData?.getData(FILES) ?? [];
    const handle = (event: any): void => {
      const paths = read(event);
      if (!paths.length) {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
      node.classList.toggle('cw-drop', event.type === 'lm-dragenter' || event.type === 'lm-dragover');
      event.dropAction = event.proposedAction; // the file browser offers to move, and moves nothing itself
      if (event.type === 'lm-drop') {
        paths.forEach(path => this.addFile(path.split(':').at(-1)!));
      }
    };
    ['lm-dragenter', 'lm-dragover', 'lm-dragleave', 'lm-drop'].forEach(name =>
      node.addEventListener(name, handle)
    );
  }

  // -- attachments --------------------------------------------------------------------------------

  private drawChips(): void {
    const chip = (text: string, remove: () => void, title = ''): HTMLElement => {
      const drop = (): void => {
        remove();
        this.drawChips();
        this.field.focus();
      };
      return make('li', { class: 'cw-chip', title }, text, iconButton(closeIcon, `Remove ${text}`, drop));
    };
    const selected = this.desk.editor.listSelectedNumbers();
    const path = this.desk.editor.panel?.context.path;
    const isAbout = path !== undefined && this.files.includes(path);
    const words = selected.length > 4 ? `${selected.length} cells` : `cell ${selected.join(', ')}`;
    this.chips.replaceChildren(
      ...this.files.map(file =>
        chip(file.split('/').at(-1)!, () => (this.files = this.files.filter(each => each !== file)), file)
      ),
      ...this.tools.map(tool =>
        chip(`#${tool}`, () => (this.tools = this.tools.filter(each => each !== tool)))
      ),
      ...(isAbout && this.hasSelection && selected.length
        ? [
            chip(
              `Selection: ${words}`,
              () => (this.hasSelection = false),
              'The selected cells are shown to the model'
            )
          ]
        : [])
    );
    this.chips.hidden = !this.chips.children.length;
    this.isOld = true;
    this.lookSoon();
  }

  private makeAttach(): { button: HTMLElement; node: HTMLElement } {
    const field = make('input', {
      type: 'text',
      'aria-label': 'Find a file or a tool',
      placeholder: 'Find a file or a tool'
    });
    const choices = new Choices(field, 'What can be attached');
    const node = make(
      'div',
      { class: 'cw-attach', role: 'group', 'aria-label': 'Attach' },
      field,
      choices.node
    );
    node.hidden = true;
    const opener = button('Attach', () => {
      node.hidden = !node.hidden;
      opener.setAttribute('aria-expanded', String(!node.hidden));
      if (!node.hidden) {
        field.value = '';
        field.focus();
        void fill();
      }
    });
    opener.title = 'Attach a file, a notebook or a tool';
    opener.setAttribute('aria-expanded', 'false');
    const close = (): void => {
      node.hidden = true;
      opener.setAttribute('aria-expanded', 'false');
    };
    const fill = async (): Promise<void> => {
      const text = field.value;
      const after = (): void => {
        close();
        this.drawChips();
        this.field.focus();
      };
      const found = [...(await this.findFiles(text, () => after())), ...this.findTools(text, () => after())];
      if (text === field.value && !node.hidden) {
        choices.show([...this.findSelection(text, after), ...found]);
      }
    };
    field.addEventListener('input', () => {
      choices.narrow(field.value);
      void fill();
    });
    field.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        close();
        opener.focus();
        event.stopPropagation();
      } else {
        choices.handleKey(event);
      }
      if (event.key === 'Enter') {
        event.preventDefault(); // it does not send the prompt
      }
    });
    return { button: opener, node };
  }

  private findSelection(text: string, after: () => void): Choice[] {
    const isOff = !this.hasSelection && 'selection'.includes(text.toLowerCase()) && this.desk.editor.panel;
    const take = (): void => {
      this.hasSelection = true;
      after();
    };
    return isOff ? [{ label: 'Selection', detail: 'the selected cells', take }] : [];
  }

  /** Open notebooks first, then files of the server's folder. */
  private async findFiles(text: string, after: (path: string) => void): Promise<Choice[]> {
    const open = this.desk.editor.listOpen().filter(path => path.toLowerCase().includes(text.toLowerCase()));
    let files: Facts[] = [];
    try {
      files = (await this.chats.call('files', { text })).files;
    } catch {
      // the open ones are known without the server
    }
    const others = files.map(file => file.path as string).filter(path => !open.includes(path));
    return [...open, ...others].map(path => ({
      label: path,
      detail: open.includes(path) ? 'open' : isNotebook(path) ? 'notebook' : '',
      take: () => {
        this.addFile(path);
        after(path);
      }
    }));
  }

  private findTools(text: string, after: (name: string) => void, attaches = true): Choice[] {
    const wanted = text.toLowerCase();
    const found = this.offered.filter(tool => tool.name.toLowerCase().includes(wanted));
    return found.map(tool => ({
      label: `#${tool.name}`,
      detail: tool.title,
      take: () => {
        if (attaches && !this.tools.includes(tool.name)) {
          this.tools.push(tool.name);
        }
        after(tool.name);
      }
    }));
  }

  private async complete(): Promise<void> {
    const trigger = findTrigger(this.field.value, this.field.selectionStart);
    if (!trigger) {
      this.choices.hide();
      return;
    }
    const { sign, word, start } = trigger;
    this.choices.narrow(word);
    const typed = this.field.value;
    if (sign === '#') {
      // Tools of another mode or of another notebook are not offered, nor while that is being asked.
      await (this.isOld ? this.lookNow() : this.looking);
    }
    const found =
      sign === '@'
        ? await this.findFiles(word, path => {
            // The chip says what is attached; inside a sentence the name stays.
            const name = typed.slice(0, start).trim() ? `${path.split('/').at(-1)} ` : '';
            replaceTyped(this.field, start, name);
            this.resize();
          })
        : this.findTools(word, name => replaceTyped(this.field, start, `#${name} `), false);
    if (typed === this.field.value && document.activeElement === this.field) {
      const isWhole = sign === '#' && found.length === 1 && found[0].label === `#${word}`;
      this.choices.show(isWhole ? [] : found);
    }
  }

  // -- mode, model, state -------------------------------------------------------------------------

  private makeModes(): HTMLElement {
    const name = newId('mode');
    const radios = MODES.map(({ mode, label }) => {
      const radio = make('input', { type: 'radio', name, value: mode, change: () => this.setMode(mode) });
      this.radios.set(mode, radio);
      return make('label', {}, radio, make('span', {}, label));
    });
    const legend = make('legend', { class: 'cw-hidden' }, 'Mode');
    return make('fieldset', { class: 'cw-modes', 'aria-describedby': this.may.id }, legend, ...radios);
  }

  private setMode(mode: Mode): void {
    void this.conversation?.call('set', { mode }).catch(this.desk.report);
    this.isOld = true;
  }

  private onChange(): void {
    this.drawState();
    this.lookSoon();
  }

  private drawState(): void {
    const { mode, running, model } = this.conversation ?? { mode: 'ask', running: null, model: '' };
    this.radios.forEach((radio, each) => (radio.checked = each === mode));
    this.may.textContent = MODES.find(each => each.mode === mode)?.may ?? '';
    keepFocus(this.node, this.field, () => {
      this.send.hidden = running !== null;
      this.stop.hidden = running === null;
    });
    if (model !== this.shownModel || this.model?.ready) {
      this.shownModel = model;
      this.models.value = model;
      this.drawModelNote();
    }
  }

  /** The models of the server, and a way to name another one. */
  private async loadModels(): Promise<void> {
    const conversation = this.conversation;
    try {
      const { models, providers, chosen } = await this.chats.call('models', { id: conversation?.id });
      if (conversation !== this.conversation) {
        return;
      }
      this.known = models;
      this.providers = providers ?? [];
      this.models.replaceChildren(
        ...this.known.map(each => {
          const lack = each.ready ? '' : each.needs === 'key' ? ' (needs a key)' : ' (not ready)';
          return make('option', { value: each.name }, `${each.title || each.name}${lack}`);
        }),
        make('option', { value: OTHER }, 'Another model …')
      );
      this.models.value = conversation?.model || chosen;
      this.drawModelNote();
    } catch (error) {
      this.say((error as Error).message, (error as any).hint);
    }
  }

  private get model(): Facts | undefined {
    return this.known.find(each => each.name === this.models.value);
  }

  private async chooseModel(): Promise<void> {
    const name = this.models.value;
    this.drawModelNote();
    if (this.model?.ready) {
      await this.setModel(name);
    } else {
      this.modelForm.querySelector<HTMLElement>('select, input')?.focus();
    }
  }

  private async setModel(model: string): Promise<void> {
    try {
      await this.conversation?.call('set', { model });
      this.chats.memory.set('model', model);
      this.say('');
    } catch (error) {
      this.say((error as Error).message, (error as any).hint);
    }
  }

  private drawModelNote(): void {
    const model = this.model;
    this.models.title = model?.title ?? ''; // a narrow panel cuts it
    this.noModel.hidden = !!model?.provider || !model || !!this.conversation?.turns.length;
    this.modelForm.hidden = model?.ready ?? false;
    if (!model && this.models.value !== OTHER) {
      this.modelForm.hidden = true;
    } else if (!this.modelForm.hidden) {
      const [provider, ...rest] = (model?.name ?? '').split(':');
      this.drawModelForm(provider, rest.join(':'));
    }
  }

  /** Name a model of a provider, and give its key, which the page forgets at once. */
  private drawModelForm(provider: string, name: string): void {
    const places = make('select', { 'aria-label': 'Provider' });
    places.append(
      ...this.providers.map(each => make('option', { value: each.name }, each.title || each.name))
    );
    places.value = provider || this.providers[0]?.name || '';
    const named = make('input', {
      type: 'text',
      'aria-label': 'Name of the model',
      placeholder: 'name of the model'
    });
    named.value = name;
    const key = make('input', {
      type: 'password',
      autocomplete: 'off',
      'aria-label': 'Key'
    });
    const note = make('p', { class: 'cw-note' });
    const find = (): Facts | undefined => this.providers.find(each => each.name === places.value);
    const draw = (): void => {
      const found = find();
      key.hidden = !found?.takes_key;
      key.placeholder = found?.ready ? 'another key, or nothing' : 'key';
      key.value = '';
      note.textContent = key.hidden ? (found?.hint ?? '') : KEY;
    };
    const save = async (): Promise<void> => {
      const model = `${places.value}:${named.value.trim()}`;
      if (!named.value.trim()) {
        this.say('Name the model.');
        named.focus();
        return;
      }
      const secret = key.value;
      key.value = '';
      this.say('The model is set up …');
      try {
        const stored = secret
          ? (await this.chats.call('key', { provider: places.value, key: secret })).where
          : '';
        await this.conversation?.call('set', { model });
        this.chats.memory.set('model', model);
        await this.loadModels();
        this.say(stored ? `The key is stored in ${stored}.` : '');
        this.field.focus();
      } catch (error) {
        this.say((error as Error).message, (error as any).hint);
      }
    };
    places.addEventListener('change', draw);
    [named, key].forEach(field =>
      field.addEventListener('keydown', event => {
        if (event.key === 'Enter') {
          event.preventDefault(); // it does not send the prompt
          void save();
        }
      })
    );
    draw();
    const use = button('Use this model', () => void save());
    this.modelForm.replaceChildren(make('div', { class: 'cw-row' }, places, named, key, use), note);
  }

  // -- what the model will see --------------------------------------------------------------------

  private lookSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.lookNow(), PAUSE);
  }

  private lookNow(): Promise<void> {
    this.looking = this.askForLook();
    return this.looking;
  }

  private async askForLook(): Promise<void> {
    if (!this.conversation || !this.chats.isOpen) {
      return;
    }
    const number = ++this.asking;
    try {
      this.isOld = false;
      const found = await this.conversation.call('look', this.describe());
      if (number < this.answered) {
        return; // a later question was answered first
      }
      this.answered = number;
      this.offered = found.tools;
      this.drawLook(found);
    } catch (error) {
      this.isOld = true;
      this.look.textContent = (error as Error).message;
    }
    if (!this.preview.hidden) {
      await this.drawPreviewNow();
    }
  }

  private drawLook(found: Facts): void {
    const name = (found.notebook ?? '').split('/').at(-1);
    this.look.dataset.notebook = found.notebook ? 'on' : 'off';
    const words = found.notebook ? `on, for ${name}.` : `off. ${found.reason}`;
    this.look.replaceChildren(make('strong', {}, 'Notebook mode: '), words);
    const path = this.desk.editor.panel?.context.path;
    if (!found.notebook && path && !this.files.includes(path)) {
      this.look.append(
        ' ',
        button(`Attach ${path.split('/').at(-1)}`, () => this.addFile(path))
      );
    }
    const tools = this.offered.map(tool => `#${tool.name}`).join(', ');
    this.look.title = tools ? `Tools: ${tools}` : 'No tools';
  }

  private async togglePreview(): Promise<void> {
    if (!this.preview.hidden) {
      this.closePreview();
      return;
    }
    this.preview.hidden = false;
    this.context.setAttribute('aria-expanded', 'true');
    await this.drawPreviewNow();
  }

  private closePreview(): void {
    this.preview.hidden = true;
    this.preview.replaceChildren();
    this.context.setAttribute('aria-expanded', 'false');
    this.context.textContent = 'Context'; // its size was that of what was shown
  }

  private async drawPreviewNow(): Promise<void> {
    try {
      const preview = await this.conversation!.call('preview', this.describe());
      if (!this.preview.hidden) {
        this.context.textContent = `Context (${showCount(preview.tokens)})`;
        this.preview.replaceChildren(drawPreview(preview));
      }
    } catch (error) {
      this.preview.replaceChildren(make('p', {}, (error as Error).message));
    }
  }

  /** Say something below the field. */
  say(text: string, hint: string | null = null): void {
    this.note.textContent = hint ? `${text}. ${hint}` : text;
  }

  private resize(): void {
    this.field.style.height = 'auto';
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, 200)}px`;
  }

  private conversation: Conversation | null = null;
  private files: string[] = [];
  private looking = Promise.resolve();
  private tools: string[] = [];
  private hasSelection = true;
  private offered: Facts[] = [];
  /** Whether the tools that are offered may be those of another mode or notebook. */
  private isOld = true;
  private asking = 0;
  private answered = 0;
  private known: Facts[] = [];
  private providers: Facts[] = [];
  private asked = '';
  private shownModel = '';
  private timer = 0;
  private readonly radios = new Map<Mode, HTMLInputElement>();
  private readonly chips = make('ul', { class: 'cw-chips', 'aria-label': 'Attached' });
  private readonly look = make('p', { class: 'cw-look', role: 'status' });
  private readonly field = make('textarea', {
    class: 'cw-prompt-field',
    rows: '2',
    'aria-label': 'Prompt',
    placeholder: 'Ask, or tell what to do. @ attaches a file, # names a tool.'
  });
  private readonly may = make('p', { class: 'cw-note', id: newId('may') });
  private readonly models = make('select', { 'aria-label': 'Model' });
  private readonly noModel = make(
    'p',
    { class: 'cw-note cw-no-model' },
    'No language model: the built-in assistant does what plain sentences and #tools say. ',
    'To add a language model, choose “Another model …” above.'
  );
  private readonly modelForm = make('div', { class: 'cw-key', role: 'group', 'aria-label': 'Another model' });
  private readonly preview = make('div', {
    class: 'cw-preview-box',
    hidden: true,
    tabindex: '0',
    role: 'region',
    'aria-label': 'What the model will see'
  });
  private readonly note = make('p', { class: 'cw-note cw-problem', role: 'status' });
  private readonly choices: Choices;
  private readonly send: HTMLButtonElement;
  private readonly stop: HTMLButtonElement;
  private readonly context: HTMLButtonElement;
  private readonly attach: { button: HTMLElement; node: HTMLElement };
}
