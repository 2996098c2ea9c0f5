// The threads of this browser: a list beside the page, or a sheet where there is no room for it.
import {remove} from './api.js';
import {button, carefulButton, count, fill, make, present, routeLink, store, when} from './dom.js';

const MOST = 100;
const kept = () => store.get('threads', []);

/** Remember a thread; one that goes on moves up. */
export function remember({id, caseId, turns}) {
  const asked = turns.filter((turn) => turn.intent.kind === 'question').map((turn) => turn.said);
  const before = kept().find((one) => one.id === id);
  const isKnown = before?.turns === turns.length;
  const cases = [...new Set([...(before?.cases ?? []), caseId])];
  const entry = {id, cases, asked, turns: turns.length, at: isKnown ? before.at : Date.now()};
  const others = kept().filter((one) => one.id !== id);
  store.set('threads', [entry, ...others].sort((one, other) => other.at - one.at).slice(0, MOST));
}

/** The thread in which a case was asked here, if it was. */
export const threadOf = (caseId) => kept().find((one) => one.cases.includes(caseId))?.id ?? '';

/** The list, with a field to search it; `open(path)` goes to a thread. */
export class ThreadList {
  constructor(open) {
    this.open = open;
    this.current = '';
    this.field = make('input', {
      type: 'search', class: 'thread-search', 'aria-label': 'Search your threads', placeholder: 'Search your threads', autocomplete: 'off',
      oninput: () => this.fillList(),
    });
    this.list = make('ol', {class: 'thread-list'});
    this.element = make('div', {class: 'threads'},
      routeLink('/', 'New question', {class: 'new-thread'}), this.field, this.list);
  }

  /** Draw what is there now; gives whether there is anything. */
  draw(current = this.current) {
    this.current = current;
    this.fillList();
    return kept().length > 0;
  }

  fillList() {
    const words = this.field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const isFound = ({asked}) => words.every((word) => asked.join(' ').toLocaleLowerCase().includes(word));
    const found = kept().filter(isFound);
    fill(this.list, found.map((one) => this.row(one)),
      !found.length && make('li', {class: 'quiet'}, words.length ? 'No thread has these words.' : 'None yet.'));
  }

  row({id, asked, at}) {
    const [first, ...others] = asked;
    const more = others.length ? ` · ${count(others.length, 'follow-up')}` : '';
    return make('li', {},
      routeLink(`/t/${id}`, first, {'aria-current': id === this.current ? 'page' : null}),
      make('p', {class: 'quiet'}, `${when(at)}${more} · `,
        carefulButton('Delete', `the thread ${first}`, 'Delete it?', () => this.remove(id))));
  }

  /** Forget a thread, here and at the service. */
  remove(id) {
    store.set('threads', kept().filter((one) => one.id !== id));
    remove(`/v1/conversations/${id}`).catch(() => {}); // what cannot be reached is not listed any more
    if (id === this.current) this.open('/');
    this.draw();
    this.field.focus();
  }

  /** Show it as a sheet. */
  present() {
    const dialog = make('dialog', {class: 'sheet', 'aria-label': 'Your threads'});
    const home = this.element.parentElement;
    fill(dialog, this.element, make('div', {class: 'row'}, button('Close', () => dialog.close(), {class: 'plain'})));
    dialog.addEventListener('click', (event) => { if (event.target.closest('a')) dialog.close(); });
    dialog.addEventListener('close', () => home.append(this.element));
    present(dialog);
  }
}
