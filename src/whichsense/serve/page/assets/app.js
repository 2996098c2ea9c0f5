// The beginning: which view an address names, the header, the keys.
import {get} from './api.js';
import {AskView} from './ask.js';
import {make, store} from './dom.js';
import {showHistory} from './history.js';
import {listen, showKeys} from './keys.js';

const info = await learnInfo();
let view = null;

/** Change the address; `replace`: it names the same thing as before. */
function go(path, replace = false) {
  if (path === location.pathname + location.search) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', path);
}

/** Show what the address names. */
async function route() {
  const [, place, id, other] = location.pathname.split('/').map(decodeURIComponent);
  for (const link of document.querySelectorAll('nav [data-route]')) {
    if (link.pathname === `/${place}` && place) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (['compare', 'corpus', 'traces'].includes(place)) {
    const module = await import(`./${place}.js`);
    view = module.create(info, go);
    view.draw();
    if (place === 'compare' && other) await view.replay(id, other);
    return;
  }
  view = new AskView(info, go);
  view.draw();
  if (place === 'q' && id) await view.replay(id);
  else view.focus();
}

function open(path) {
  go(path);
  route();
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-route]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  open(link.pathname);
});
window.addEventListener('popstate', route);
document.getElementById('open-history').addEventListener('click', () => showHistory(open));
document.getElementById('open-keys').addEventListener('click', showKeys);
listen((key) => {
  if (view?.pressed?.(key)) return true;
  if (key !== '/') return false;
  open('/');
  return true;
});

// Light and dark: the system's, until the switch is used.
const dark = matchMedia('(prefers-color-scheme: dark)');
const themeSwitch = document.getElementById('switch-theme');
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light')) === 'dark';
const label = () => { themeSwitch.textContent = isDark() ? 'Light' : 'Dark'; };
themeSwitch.addEventListener('click', () => {
  const chosen = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = chosen;
  store.set('theme', chosen);
  label();
});
dark.addEventListener('change', label);
label();
window.addEventListener('offline', () => document.body.prepend(offlineLine()));
window.addEventListener('online', () => document.querySelector('.offline')?.remove());
const offlineLine = () => make('p', {class: 'offline', role: 'alert'},
  'This device is offline. What is shown stays; ask again when it is back.');

/** What the service says of itself; until it can be reached, nothing. */
async function learnInfo() {
  try {
    return await get('/v1/info');
  } catch {
    return {corpus: '', passages: 0, systems: [], explains: true, clarifies: true, traces: true};
  }
}

await route();
