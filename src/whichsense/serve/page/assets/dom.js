// Elements. Text always becomes a text node: nothing that comes from a corpus is ever markup.

/** An element: `make('p', {class: 'x', onclick: f}, 'text', child, …)`. Empty children are left out. */
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

/** Put these in an element's place, in one step. */
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

/** "1 reading", "3 readings". */
export function count(number, noun) {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
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
