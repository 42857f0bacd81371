// A list to choose from while typing: files after `@`, tools after `#`, or anything to attach.
import { make, newId } from './dom';

export type Choice = { label: string; detail?: string; take: () => void };

/** Shows choices for a field; arrows, Enter, Tab and Escape work in the field. */
export class Choices {
  constructor(
    private readonly field: HTMLInputElement | HTMLTextAreaElement,
    label: string
  ) {
    const id = newId('choices');
    const keydown = (event: KeyboardEvent): void => void this.handleKey(event);
    this.node = make('ul', {
      class: 'cw-choices',
      role: 'listbox',
      id,
      'aria-label': label,
      tabindex: '0',
      keydown
    });
    this.node.hidden = true;
    field.setAttribute('aria-autocomplete', 'list');
    field.setAttribute('aria-controls', id);
  }

  readonly node: HTMLElement;

  get isShown(): boolean {
    return !this.node.hidden;
  }

  show(choices: Choice[]): void {
    this.choices = choices;
    this.node.hidden = !choices.length;
    this.node.replaceChildren(
      ...choices.map((choice, index) => {
        const detail = make('span', { class: 'cw-note' }, choice.detail ?? '');
        const take = (event: Event): void => {
          event.preventDefault(); // the field keeps the focus
          this.take(index);
        };
        return make(
          'li',
          { role: 'option', id: newId('choice'), mousedown: take },
          make('span', {}, choice.label),
          ' ',
          detail
        );
      })
    );
    this.mark(0);
  }

  /** Leave out at once what does not fit what was typed since, until a new list is there. */
  narrow(word: string): void {
    const wanted = word.toLowerCase();
    const left = this.choices.filter(choice => choice.label.toLowerCase().includes(wanted));
    if (left.length < this.choices.length) {
      this.show(left);
    }
  }

  hide(): void {
    this.show([]);
    this.field.removeAttribute('aria-activedescendant');
  }

  /** Use a key for the list; returns whether it was one for it. */
  handleKey(event: KeyboardEvent): boolean {
    if (!this.isShown || event.isComposing) {
      return false;
    }
    const { length } = this.choices;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.mark((this.place + (event.key === 'ArrowDown' ? 1 : length - 1)) % length);
    } else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') {
      this.take(this.place);
    } else if (event.key === 'Escape') {
      this.hide();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private take(index: number): void {
    const choice = this.choices[index];
    this.hide();
    choice?.take();
  }

  private mark(place: number): void {
    this.place = place;
    [...this.node.children].forEach((node, index) => {
      node.setAttribute('aria-selected', String(index === place));
      if (index === place) {
        this.field.setAttribute('aria-activedescendant', node.id);
        node.scrollIntoView?.({ block: 'nearest' });
      }
    });
  }

  private choices: Choice[] = [];
  private place = 0;
}

/** The word with `@` or `#` that ends at the cursor; null if there is none. */
export function findTrigger(
  text: string,
  cursor: number
): { sign: '@' | '#'; word: string; start: number } | null {
  const found = /(?:^|\s)([@#])("[^"\n]*|[^\s"]*)$/.exec(text.slice(0, cursor));
  if (!found) {
    return null;
  }
  const word = found[2];
  return { sign: found[1] as '@' | '#', word: word.replace(/^"/, ''), start: cursor - word.length - 1 };
}

/** Put a text in the place of what was typed from `start` to the cursor. */
export function replaceTyped(field: HTMLTextAreaElement, start: number, text: string): void {
  const end = field.selectionStart;
  field.setRangeText(text, start, end, 'end');
  field.focus();
}
