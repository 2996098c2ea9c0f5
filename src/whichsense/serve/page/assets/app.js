// The beginning: which view an address names, the header, the threads beside it, the keys.
import {learnInfo} from './api.js';
import {BASE, button, fill, listenToHeader, make, present} from './dom.js';
import {ThreadView} from './thread.js';
import {ThreadList} from './threads.js';

const info = await learnInfo();
const side = document.getElementById('threads');
const threads = new ThreadList(open);
fill(side, threads.element);
let view = null;

/** Change the address; `replace`: it names the same thing as before. */
function go(path, replace = false) {
  if (BASE + path === location.pathname + location.search) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', BASE + path);
}

/** Show what the address names. */
async function route() {
  const [, place, id, other] = location.pathname.slice(BASE.length).split('/').map(decodeURIComponent);
  for (const link of document.querySelectorAll('nav [data-route]')) {
    if (place && link.pathname === `${BASE}/${place}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.body.classList.remove('menu-open');
  if (['compare', 'corpus', 'traces'].includes(place)) {
    view?.leave?.();
    const module = await import(`./${place}.js`);
    view = module.create(info, go);
    view.draw();
    document.body.classList.remove('has-threads');
    if (place === 'compare' && other) await view.replay(id, other);
    return;
  }
  // Another turn of a thread that is shown is shown by the view that has it.
  if (!(view instanceof ThreadView)) view = new ThreadView(info, go, showThreads);
  if (place === 't' && id) await view.open(id, other);
  else if (place === 'q' && id) await view.replay(id);
  else view.begin();
}

function open(path) {
  go(path);
  route();
}

/** List the threads beside the page on which one asks: once there are any, or one is begun. */
function showThreads(current, isBegun) {
  const isAny = threads.draw(current);
  document.body.classList.toggle('has-threads', isAny || isBegun);
}

listenToHeader(open);
window.addEventListener('popstate', route);
document.getElementById('open-threads').addEventListener('click', () => threads.present());
document.getElementById('open-keys').addEventListener('click', showKeys);

// Keys: what each does is up to the view that is shown.
const KEYS = [
  ['/', 'go to the field'],
  ['1 – 9', 'open a reading: that was meant'],
  ['Shift 1 – 9', 'open one more beside it'],
  ['a', 'all of them'],
  ['e', 'tell the whole story'],
  ['s', 'open the sources, close them'],
  ['n', 'a new question'],
  ['Esc', 'stop an answer, close a sheet'],
  ['?', 'this list'],
];

function showKeys() {
  const rows = KEYS.map(([key, what]) => make('div', {}, make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)));
  const dialog = make('dialog', {class: 'sheet', 'aria-labelledby': 'keys-title'});
  dialog.append(make('h2', {id: 'keys-title'}, 'Keys'), make('dl', {class: 'keys'}, rows),
    make('div', {class: 'row'}, button('Close', () => dialog.close(), {class: 'plain'})));
  present(dialog);
}

function pressed(key) {
  if (view?.pressed?.(key)) return true;
  if (key === '?') return showKeys(), true;
  if (key === '/' || key === 'n') return open('/'), true;
  return false;
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector('dialog[open]')) return;
  if (event.target.closest('input, textarea, select')) return;
  // A figure with Shift, on keyboards on which it is another character then.
  const isAdding = event.shiftKey && /^Digit[1-9]$/.test(event.code) && !/\d/.test(event.key);
  if (pressed(isAdding ? `+${event.code.at(-1)}` : event.key)) event.preventDefault();
});

window.addEventListener('offline', () => document.body.prepend(offlineLine()));
window.addEventListener('online', () => document.querySelector('.offline')?.remove());
const offlineLine = () => make('p', {class: 'offline', role: 'alert'},
  'This device is offline. What is shown stays; what is asked is asked again when it is back.');

await route();
