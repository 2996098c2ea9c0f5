// Earlier questions. They are kept in this browser alone.
import {button, count, fill, make, store} from './dom.js';

const MOST = 50;

/** Remember an answered question; one that was asked before moves up. */
export function remember({caseId, conversationId, question, found}) {
  const others = earlier().filter((one) => one.caseId !== caseId && one.question !== question);
  const entry = {caseId, conversationId, question, readings: found.readings.length, at: Date.now()};
  store.set('history', [entry, ...others].slice(0, MOST));
}

export const earlier = () => store.get('history', []);

/** The conversation in which a case was asked here, if it was. */
export function conversationOf(caseId) {
  return earlier().find((one) => one.caseId === caseId)?.conversationId ?? '';
}

/** Show earlier questions; `open(path)` goes to one. */
export function showHistory(open) {
  const dialog = make('dialog', {class: 'sheet', 'aria-labelledby': 'history-title'});
  const draw = () => fill(dialog,
    make('h2', {id: 'history-title'}, 'Earlier questions'),
    earlier().length
      ? make('ol', {class: 'plain-list'}, earlier().map(row))
      : make('p', {class: 'quiet'}, 'None yet. What you ask is listed here, in this browser alone.'),
    make('div', {class: 'row'},
      earlier().length > 0 && button('Forget all', () => { store.set('history', []); draw(); }, {class: 'plain'}),
      button('Close', () => dialog.close(), {class: 'plain'})));
  const row = (one) => make('li', {},
    make('a', {
      href: `/q/${one.caseId}`,
      onclick: (event) => { event.preventDefault(); dialog.close(); open(`/q/${one.caseId}`); },
    }, one.question),
    make('span', {class: 'quiet'}, ` ${count(one.readings, 'reading')} · ${when(one.at)}`));
  draw();
  present(dialog);
}

/** A time as people say it: today's hour, or the day. */
export function when(milliseconds) {
  const at = new Date(milliseconds);
  if (at.toDateString() === new Date().toDateString()) {
    return at.toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'});
  }
  return at.toLocaleDateString('en-GB', {day: 'numeric', month: 'long', year: 'numeric'});
}

/** Open a dialog that goes when it is closed. */
export function present(dialog) {
  document.body.append(dialog);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.showModal();
}
