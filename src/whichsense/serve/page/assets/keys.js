// Keys: what each does is up to the view that is shown.
import {button, make} from './dom.js';
import {present} from './history.js';

const LIST = [
  ['/', 'go to the question'],
  ['1 – 9', 'choose an option'],
  ['a', 'all of them'],
  ['e', 'tell the whole story'],
  ['s', 'open the sources, close them'],
  ['?', 'this list'],
  ['Esc', 'close'],
];

export function showKeys() {
  const rows = LIST.map(([key, what]) => make('div', {}, make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)));
  const dialog = make('dialog', {class: 'sheet', 'aria-labelledby': 'keys-title'});
  dialog.append(make('h2', {id: 'keys-title'}, 'Keys'), make('dl', {class: 'keys'}, rows),
    make('div', {class: 'row'}, button('Close', () => dialog.close(), {class: 'plain'})));
  present(dialog);
}

/** Listen for keys, unless a person writes. `pressed(key)` says whether it did something. */
export function listen(pressed) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector('dialog[open]')) return;
    if (event.target.closest('input, textarea, select')) return;
    if (event.key === '?') showKeys();
    else if (!pressed(event.key)) return;
    event.preventDefault();
  });
}
