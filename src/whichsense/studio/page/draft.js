// A draft: every change is saved with the version that it was made on, and kept in this browser until it has arrived.
import {store} from './dom.js';
import {get, post} from './requests.js';

const PAUSE = 350; // ms of no typing before a change is sent
const RETRY = 3000; // ms between attempts while there is no connection
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * The draft of an item. `told` hears: `onAnswer(answer)` with findings and edits, `onState(state)` (one of saved, saving,
 * offline, with its problem), `onReplace(value)` where another text takes the form's place, `onStale(yours, theirs)`, which gives a promise
 * of "yours" or "theirs", and `onTrouble(problem)`.
 */
export function keepDraft(number, key, draft, told) {
  let {version, value, before} = draft;
  let pending = {};
  let sent = {}; // and not answered yet
  let underway = null; // the promise of a save
  let timer = 0;
  const undone = []; // versions to go forward to
  const kept = store.get(key, null);

  const isClean = () => !underway && Object.keys(pending).length === 0;

  function keep() {
    const set = {...sent, ...pending};
    store.set(key, Object.keys(set).length ? {version, set} : null);
  }

  function change(field, next) {
    value = {...value, [field]: next};
    pending[field] = next;
    undone.length = 0;
    keep();
    told.onState('saving');
    wait(PAUSE);
  }

  function wait(pause) {
    clearTimeout(timer);
    timer = setTimeout(flush, pause);
  }

  /** Send what is not sent yet; true once all of it has arrived. */
  async function flush() {
    clearTimeout(timer);
    if (underway) await underway;
    if (isClean()) return true;
    underway ??= send();
    const arrived = await underway;
    return arrived && (isClean() || flush());
  }

  async function send() {
    const set = pending;
    sent = set;
    pending = {};
    try {
      accept(await post(`items/${number}/save`, {version, set}));
      return true;
    } catch (problem) {
      pending = {...set, ...pending};
      return await recover(problem, set);
    } finally {
      underway = null;
      sent = {};
      keep();
      if (isClean()) told.onState('saved');
    }
  }

  function accept(answer) {
    ({version, before} = answer.draft);
    told.onAnswer(answer);
  }

  /** What can be done about a save that was refused; true where nothing of it is lost. */
  async function recover(problem, set) {
    if (problem.kind === 'stale') return reconcile(problem.theirs, set);
    if (problem.kind === 'lease' && (await retake())) {
      wait(0);
      return false;
    }
    if (problem.isPassing) {
      told.onState('offline', problem);
      wait(RETRY);
    } else {
      told.onTrouble(problem);
    }
    return false;
  }

  /** The draft has a version that this page does not know: its own, where only the answer was lost; or another's. */
  async function reconcile(theirs, set) {
    version = theirs.version;
    if (Object.keys(set).every((field) => same(set[field], theirs.value[field]))) {
      pending = Object.fromEntries(Object.entries(pending).filter(([field, own]) => !same(own, theirs.value[field])));
      return true;
    }
    if ((await told.onStale({...theirs.value, ...pending}, theirs.value)) === 'theirs') {
      pending = {};
      replace(theirs.value);
      return true;
    }
    value = {...theirs.value, ...pending};
    told.onReplace(value);
    wait(0);
    return false;
  }

  async function retake() {
    return post('take', {item: number}).then(({view}) => view !== null, () => false);
  }

  function replace(next) {
    value = next;
    told.onReplace(next);
  }

  /** Do something with the version that has arrived; what is written meanwhile comes after it. */
  async function act(name, body = {}) {
    if (!(await flush())) return null;
    try {
      const answer = await post(`items/${number}/${name}`, {version, ...body});
      accept(answer);
      return answer;
    } catch (problem) {
      if (problem.kind === 'stale') return (await reconcile(problem.theirs, pending), null);
      throw problem;
    }
  }

  /** Go back by one step, or to a version. */
  async function undo(to) {
    if (!(await flush())) return;
    const left = version;
    const answer = await act('undo', to === undefined ? {} : {to});
    if (!answer) return;
    if (to === undefined) undone.push(left);
    replace(answer.draft.value);
  }

  window.addEventListener('online', flush);
  if (kept) { // unsent when the page was last left
    pending = kept.set;
    value = {...value, ...kept.set};
    version = kept.version;
    wait(0);
  }

  return {
    get value() { return value; },
    change,
    flush,
    isSaved: isClean,
    canUndo: () => before !== null || !isClean(),
    canRedo: () => undone.length > 0,
    undo: () => (before === null && isClean() ? undefined : undo()),
    redo: () => (undone.length ? undo(undone.pop()) : undefined),
    submit: () => act('submit'),
    reopen: () => act('reopen'),
    /** Look whether another window has changed it. */
    async refresh() {
      if (!isClean()) return;
      const view = await get(`items/${number}`).catch(() => null);
      if (!view || !isClean() || view.draft.version <= version) return;
      accept(view);
      replace(view.draft.value);
    },
    close() {
      clearTimeout(timer);
      window.removeEventListener('online', flush);
    },
  };
}
