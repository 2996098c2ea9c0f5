// What went wrong, in words for the person who asks; what passes by itself is tried again by itself.
import {announce, button, make, store} from './dom.js';

// What the page says where it knows better than the service who reads it.
const WORDS = {
  'offline': ['Nobody answers', 'The service cannot be reached. It may be starting again, or this device is offline.'],
  'loading': ['Not quite ready', 'The service is starting.'],
  'stopping': ['The service is starting again', 'It takes a moment.'],
  'worker-ended': ['The answer was cut off', 'The service lost what it was working on.'],
  'queue-full': ['Many questions at once', 'Others are asking, too. Your question is put again as soon as there is room.'],
  'deadline': ['Many questions at once', 'Others are asking, too. Your question is put again as soon as there is room.'],
  'rate': ['A short pause', 'You asked more often than this service allows in a minute.'],
  'index': ['The documents cannot be read', 'Whoever runs this service can mend that.'],
  'no-index': ['There is no such corpus', 'It is not served any more, or your key does not open it. Ask another one.'],
  'quota': ['Enough for today', 'Your key has sent as much as it may in a day.'],
  'shard': ['A part of the documents is missing', 'It is being started again.'],
  'key': ['A key is needed', 'This service answers those who have a key. Ask whoever runs it for one.'],
  'scope': ['Your key does not allow this', 'Ask whoever runs this service for a key that does.'],
  'too-long': ['This question is too long', ''],
  'not-found': ['There is no such answer', 'It was deleted, or is older than what this service keeps. Ask the question again.'],
  'missing-stage': ['This service cannot do that', 'The system that answers here was set up without it.'],
  'not-configured': ['This service is not ready', 'Whoever runs it has to finish setting it up.'],
  'internal': ['The service failed at this', 'Try it once more; put it in other words if it fails again.'],
};
const PASSING = new Set(['offline', 'loading', 'stopping', 'worker-ended', 'queue-full', 'deadline', 'rate', 'index', 'shard']);
const PAUSE = 5; // seconds between attempts where the service names no time

const kindOf = ({kind, status}) => (kind === 'index' && status === 404 ? 'no-index' : kind);
const saying = (problem) => WORDS[kindOf(problem)]?.[1]
  || [problem.title ?? 'The page failed at this.', problem.fix].filter(Boolean).join(' ');

/** One line, beneath what it belongs to. */
export function troubleLine(problem) {
  const text = saying(problem);
  announce(text);
  return make('p', {class: 'trouble-line'}, text);
}

/** A whole state: what happened, what to do about it, and `again()`: by itself where it passes, else by a button. */
export function trouble(problem, again) {
  const kind = kindOf(problem);
  const [title] = WORDS[kind] ?? ['This did not work'];
  const heading = make('h2', {tabindex: '-1'}, title);
  const text = saying(problem);
  const box = make('section', {class: 'trouble', 'data-kind': kind ?? 'page'},
    heading, make('p', {}, text),
    (problem.errors ?? []).map((error) => make('p', {}, error.problem)));
  if (kind === 'key' && again) box.append(keyForm(again));
  else if (again && PASSING.has(kind)) box.append(retry(problem, again));
  else if (again) box.append(button('Try again', again, {class: 'plain'}));
  if (WORDS[kind] && problem.fix) box.append(forOperators(problem));
  announce(`${title}. ${text}`);
  return box;
}

/** What the service itself says: for those who run it. */
function forOperators({title, fix}) {
  return make('details', {class: 'also'}, make('summary', {}, 'For whoever runs this service'), make('p', {}, `${title} ${fix}`));
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

/** Try again after the pause that the service asks for, and say how long that is; where it asks for none, sooner by a button. */
function retry({kind, retryAfter}, again) {
  let left = Math.ceil(retryAfter || PAUSE);
  const said = make('span', {class: 'quiet'});
  const line = make('p', {class: 'row retry'}, said, !retryAfter && button('Try now', () => finish(), {class: 'plain'}));
  const tell = () => { said.textContent = `Trying again by itself in ${left} s.`; };
  const timer = setInterval(() => {
    if (!line.isConnected) return finish(false);
    if (--left > 0) return tell();
    finish();
  }, 1000);
  const online = () => finish();
  if (kind === 'offline') window.addEventListener('online', online);
  function finish(isWanted = true) {
    clearInterval(timer);
    window.removeEventListener('online', online);
    if (isWanted) again();
  }
  tell();
  return line;
}
