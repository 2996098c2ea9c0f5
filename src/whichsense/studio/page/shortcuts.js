// Keys: single ones where nobody types, a few with Ctrl everywhere.
import {button, make, present} from './dom.js';

const LIST = [
  ['1 – 9', 'choose'],
  ['y, n', 'yes, no'],
  ['a', 'add an entry'],
  ['/', 'search the pages'],
  ['g', 'guidelines'],
  ['u, r', 'undo, redo'],
  ['Ctrl ↵', 'submit'],
  ['Esc', 'leave a field, close'],
  ['?', 'this list'],
];

export function showKeys() {
  const rows = LIST.map(([key, what]) => make('div', {}, make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)));
  const dialog = make('dialog', {class: 'sheet', 'aria-labelledby': 'keys-title'});
  dialog.append(make('h2', {id: 'keys-title'}, 'Keys'), make('dl', {class: 'keys'}, rows),
    make('div', {class: 'row'}, button('Close', () => dialog.close(), {class: 'plain'})));
  present(dialog);
}

/** Listen for keys; `pressed(key)` says whether it did something. */
export function listen(pressed) {
  document.addEventListener('keydown', (event) => {
    if (event.isComposing || event.altKey || document.querySelector('dialog[open]')) return;
    const field = event.target.closest('input:not([type=radio], [type=checkbox]), textarea, select');
    const isSubmit = (event.ctrlKey || event.metaKey) && event.key === 'Enter';
    if (isSubmit) {
      if (!pressed('submit')) return;
    } else if (field) {
      if (event.key === 'Escape') field.blur();
      return;
    } else if (event.ctrlKey || event.metaKey) {
      return;
    } else if (event.key === '?') {
      showKeys();
    } else if (!pressed(event.key)) {
      return;
    }
    event.preventDefault();
  });
}
