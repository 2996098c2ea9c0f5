// What went wrong, and what to do about it.
import {announce, button, make, store} from './dom.js';

/** One line, beneath what it belongs to. */
export function troubleLine(problem) {
  const text = [problem.title ?? 'The page failed at this.', problem.fix].filter(Boolean).join(' ');
  announce(text);
  return make('p', {class: 'trouble-line'}, text);
}

const HEADINGS = {
  'offline': 'Nobody answers',
  'key': 'A key is needed',
  'scope': 'This key may not ask',
  'rate': 'Asked too often',
  'queue-full': 'Too many questions at once',
  'too-long': 'This question is too long',
  'index': 'The index cannot be read',
  'loading': 'Not quite ready',
  'stopping': 'The service is being stopped',
  'not-found': 'There is no such answer',
};

/** A whole state: what happened, what to do, and a button that does it. */
export function trouble(problem, again) {
  const heading = make('h2', {tabindex: '-1'}, HEADINGS[problem.kind] ?? 'This did not work');
  const box = make('section', {class: 'trouble', 'data-kind': problem.kind ?? 'page'},
    heading,
    make('p', {}, problem.title ?? 'The page failed at this.'),
    (problem.errors ?? []).map((error) => make('p', {}, error.problem)),
    problem.fix && make('p', {class: 'fix'}, problem.fix));
  if (problem.kind === 'key' && again) box.append(keyForm(again));
  else if (problem.retryAfter && again) box.append(wait(problem.retryAfter, again));
  else if (again) box.append(button('Try again', again, {class: 'plain'}));
  announce(`${heading.textContent}. ${problem.title} ${problem.fix ?? ''}`);
  return box;
}

/** A field for an API key; it stays in this browser. */
function keyForm(again) {
  const field = make('input', {type: 'password', id: 'api-key', autocomplete: 'off', placeholder: 'ws_…'});
  return make('form', {
    class: 'row',
    onsubmit: (event) => {
      event.preventDefault();
      store.set('key', field.value.trim());
      again();
    },
  }, make('label', {for: 'api-key'}, 'Your key'), field, make('button', {class: 'plain'}, 'Use this key'));
}

/** A button that waits as long as the service asks for, and says how long. */
function wait(seconds, again) {
  const retry = button('', again, {class: 'plain', disabled: true});
  let left = Math.ceil(seconds);
  const tell = () => {
    retry.disabled = left > 0;
    retry.textContent = left > 0 ? `Try again in ${left} s` : 'Try again';
    if (left-- > 0 && (retry.isConnected || left === Math.ceil(seconds) - 1)) setTimeout(tell, 1000);
  };
  tell();
  return retry;
}
