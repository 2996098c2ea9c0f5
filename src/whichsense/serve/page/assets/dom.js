// Elements. Text always becomes a text node: nothing that comes from a corpus is ever markup.

/** What all addresses of the service begin with: '', or where a proxy has it. */
export const BASE = new URL(import.meta.url).pathname.split('/page/')[0];

/** Make an element: `make('p', {class: 'x', onclick: f}, 'text', child, …)`. Empty children are left out. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

/** Append strings and nodes, lists of them too. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    element.append(child);
  }
  return element;
}

export const main = () => document.getElementById('main');

/** Replace an element's children in one step. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Tell a screen reader, and nobody else. */
export function announce(text) {
  document.getElementById('status').textContent = text;
}

export function button(label, onclick, properties = {}) {
  return make('button', {type: 'button', onclick, ...properties}, label);
}

/** A link to another view of the page. */
export function routeLink(path, label, properties = {}) {
  return make('a', {href: BASE + path, 'data-route': true, ...properties}, label);
}

/** Open links of the page without loading it anew; show the header's menu and hide it. */
export function listenToHeader(open) {
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[data-route]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(link.pathname.slice(BASE.length) + link.search);
  });
  const menu = document.getElementById('open-menu');
  menu.addEventListener('click', () => {
    menu.setAttribute('aria-expanded', String(document.body.classList.toggle('menu-open')));
  });
}

/** Make a button that asks before it acts: `name`, then `question` with the button once more and one that keeps. */
export function carefulButton(name, thing, question, act) {
  const place = make('span', {class: 'act'});
  const keep = button('Keep', () => { fill(place, ask); ask.focus(); }, {class: 'link', 'aria-label': `Keep ${thing}`});
  const ask = button(name, () => {
    fill(place, make('span', {}, `${question} `),
      button(name, () => act(place), {class: 'link', 'aria-label': `${name} ${thing} for good`}), ' ', keep);
    keep.focus();
  }, {class: 'link', 'aria-label': `${name} ${thing}`});
  place.append(ask);
  return place;
}

/** Say a number with its noun: "1 reading", "3 readings". */
export function count(number, noun) {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

/** Say a time as people do: today's hour, or the day. */
export function when(milliseconds) {
  const at = new Date(milliseconds);
  if (at.toDateString() === new Date().toDateString()) {
    return at.toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'});
  }
  return at.toLocaleDateString('en-GB', {day: 'numeric', month: 'short', year: 'numeric'});
}

/** Open a dialog that is removed when it is closed. */
export function present(dialog) {
  document.body.append(dialog);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.showModal();
}

let lastId = 0;
export const freshId = (prefix) => `${prefix}-${++lastId}`;

/** What this browser keeps for the page. Where storage is closed, nothing is kept. */
export const store = {
  get(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(`whichsense.${name}`)) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`whichsense.${name}`, JSON.stringify(value));
    } catch { /* full or closed */ }
  },
};
