// Elements, made without any text ever being read as HTML.
import type { LabIcon } from '@jupyterlab/ui-components';

type Attributes = { [name: string]: string | boolean | ((event: any) => void) };

/** Make an element; functions are listeners, by the name of their event. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      node.addEventListener(name, value);
    } else if (value === true) {
      node.setAttribute(name, '');
    } else if (value !== false) {
      node.setAttribute(name, value);
    }
  }
  node.append(...children);
  return node;
}

/** A button with words on it. */
export function button(
  text: string,
  act: (event: MouseEvent) => void,
  attributes: Attributes = {}
): HTMLButtonElement {
  return make('button', { type: 'button', class: 'cw-button', click: act, ...attributes }, text);
}

/** A button with an icon, and words for those who do not see it. */
export function iconButton(
  icon: LabIcon,
  label: string,
  act: (event: MouseEvent) => void,
  attributes: Attributes = {}
): HTMLButtonElement {
  const all = { type: 'button', class: 'cw-button cw-icon', title: label, 'aria-label': label };
  return make(
    'button',
    { ...all, click: act, ...attributes },
    icon.element({ tag: 'span', elementSize: 'small' })
  );
}

/** Change a node; if what had the focus in it is gone, hidden or disabled then, another one gets it. */
export function keepFocus(node: HTMLElement, next: HTMLElement, change: () => void): void {
  const hadFocus = node.contains(document.activeElement);
  change();
  const now = document.activeElement;
  // A browser takes the focus from what is hidden only when it draws the page.
  if (hadFocus && !(now && node.contains(now) && !now.closest('[hidden], :disabled'))) {
    next.focus();
  }
}

let count = 0;

/** An id that no other element has. */
export const newId = (what: string): string => `cw-${what}-${++count}`;
