// The page of a question: what is shown, the form, the search beside it. Drawn from the project's fields alone.
import {announce, append, button, fill, main, make, present} from './dom.js';
import {keepDraft} from './draft.js';
import {makeForm} from './form.js';
import {hold} from './lease.js';
import {makeLookup} from './lookup.js';
import {composed, drawAbove, drawBeside} from './material.js';
import {get, post} from './requests.js';
import {drawWritten, told} from './values.js';

const STATES = {saved: 'Saved', saving: 'Saving …', offline: 'Kept in this browser'};

/** Show an item; gives what `leave()` and `pressed(key)` do. */
export async function showItem(context, number) {
  const taken = await post('take', {item: number}).catch((problem) => problem);
  const view = taken.view ?? (await ownView(number, taken));
  return draw(context, view);
}

/** What a member sees of an item that is no longer theirs to write; the problem where they never wrote it. */
async function ownView(number, problem) {
  if (problem.kind !== 'lease') throw problem;
  const view = await get(`items/${number}`);
  if (!view.draft.is_submitted) throw problem;
  return view;
}

function draw({project, member, go}, view) {
  const {item: number, body, draft: begun} = view;
  const isSubmitted = begun.is_submitted;
  const state = make('span', {class: 'state quiet', role: 'status'});
  const preview = 'draft' in body ? make('p', {class: 'draft composed', 'aria-live': 'polite'}) : null;
  const form = makeForm(project.fields, body, begun.value, (field, value) => {
    draft.change(field, value);
    if (body.parsed && field in body.parsed && form.value.action === 'keep') {
      form.set('action', 'revise'); // what is edited has not been kept
      draft.change('action', 'revise');
    }
    showPreview();
    showSteps();
  });
  const lookup = project.searches && !isSubmitted ? makeLookup(number, view) : null;
  const trouble = make('div', {class: 'findings', role: 'alert'});
  const undo = button('Undo', () => draft.undo(), {class: 'link'});
  const redo = button('Redo', () => draft.redo(), {class: 'link'});
  const draft = keepDraft(number, `studio.${project.name}.${member.id}.${number}`, begun, {
    onAnswer: ({findings, edits}) => { form.show(findings, edits); showSteps(); },
    onState: showState,
    onReplace: (value) => { form.replace(value); showPreview(); showSteps(); },
    onStale: askWhich,
    onTrouble: say,
  });
  if (draft.value !== begun.value) form.replace(draft.value);
  const letGo = isSubmitted ? () => {} : hold(number, project.lease, {onLost: say, isSaved: draft.isSaved});
  let hasLeft = false;

  function showState(name, problem) {
    state.textContent = STATES[name];
    const banner = document.getElementById('offline');
    banner.hidden = !problem;
    if (problem) banner.textContent = `${problem.title} What you write is kept in this browser and sent by itself later.`;
  }

  function showSteps() {
    undo.disabled = !draft.canUndo();
    redo.disabled = !draft.canRedo();
  }

  function showPreview() {
    if (!preview) return;
    const text = composed(form.value);
    fill(preview, text && [make('span', {class: 'quiet'}, 'It reads: '), text]);
  }

  function say(problem) {
    fill(trouble, make('p', {class: 'finding error'}, [problem.title, problem.fix].filter(Boolean).join(' ')));
  }

  async function submit() {
    fill(trouble);
    try {
      const answer = await draft.submit();
      if (!answer) return;
      hasLeft = true;
      letGo(false);
      if (answer.feedback) go(`/item/${number}`);
      else await next('Submitted.');
    } catch (problem) {
      if (problem.kind !== 'incomplete') return say(problem);
      form.showAll(problem.findings);
      const search = problem.findings.find((finding) => finding.where === 'search');
      if (search) say({title: search.reason});
    }
  }

  async function next(said) {
    const {view: following} = await post('take');
    announce(following ? `${said} The next question.` : `${said} Nothing is left.`);
    go(following ? `/item/${following.item}` : '/');
  }

  async function reopen() {
    try {
      await draft.reopen();
      go(`/item/${number}`);
    } catch (problem) {
      say(problem);
    }
  }

  function skip() {
    const reason = make('textarea', {id: 'skip-reason', rows: 2, required: true, maxlength: 1000});
    const dialog = make('dialog', {class: 'sheet', 'aria-labelledby': 'skip-title'});
    dialog.append(make('form', {method: 'dialog', class: 'stack', onsubmit: async () => {
      await draft.flush();
      await post(`items/${number}/leave`, {skip: reason.value.trim() || 'skipped'});
      hasLeft = true;
      letGo(false);
      await next('Skipped.');
    }}, make('h2', {id: 'skip-title'}, 'Skip this question'), make('label', {for: 'skip-reason'}, 'Why? The project’s owner reads this.'), reason,
    make('div', {class: 'row'}, make('button', {class: 'go'}, 'Skip'), button('Keep it', () => dialog.close(), {class: 'plain', formnovalidate: true}))));
    present(dialog);
  }

  const mine = make('section', {class: 'desk-form', 'aria-label': 'Your annotation'},
    'draft' in body && body.draft && make('p', {class: 'draft'}, make('span', {class: 'quiet'}, 'Draft: '), body.draft),
    body.suggestion && suggestion(body.suggestion, (value) => { for (const [field, own] of Object.entries(value)) draft.change(field, own); form.replace(draft.value); }),
    isSubmitted ? make('fieldset', {disabled: true, class: 'closed-form'}, form.element) : form.element, preview, trouble);
  const foot = isSubmitted
    ? make('div', {class: 'desk-foot'}, make('span', {}, 'You have submitted this.'), !view.feedback && !view.final && button('Change it', reopen, {class: 'plain'}), button('Next question', () => next(''), {class: 'go'}))
    : make('div', {class: 'desk-foot'}, button('Submit', submit, {class: 'go', title: 'Ctrl+Enter'}), state,
      undo, redo, button('Skip', skip, {class: 'link'}));
  mine.append(foot);

  const beside = [drawBeside(body, project.fields), lookup?.element].filter(Boolean);
  const feedback = view.feedback && make('section', {class: 'feedback-own', 'aria-label': 'Feedback'}, make('p', {class: 'notes'}, view.feedback.says),
    make('div', {class: 'side-by-side'}, drawWritten('Yours', project.fields, draft.value, body), drawWritten('Right', project.fields, view.feedback.value, body)));
  const heading = make('h1', {class: 'asked', tabindex: '-1'}, body.question);
  const columns = make('div', {class: beside.length ? 'desk' : 'desk alone-desk', 'data-shown': 'form'}, mine, beside.length > 0 && make('aside', {class: 'desk-beside'}, beside));
  fill(main(), make('p', {class: 'crumb quiet'}, PARTS[view.part] ?? project.title), heading, drawAbove(body), feedback, beside.length > 0 && switchParts(columns, lookup), columns);
  if (!isSubmitted && !Object.keys(draft.value).length) prefill(body, draft, form);
  form.show(view.findings, view.edits);
  showPreview();
  showSteps();
  heading.focus();
  if (view.feedback) announce(view.feedback.says);

  const refresh = () => draft.refresh();
  window.addEventListener('focus', refresh);
  return {
    title: body.question,
    leave() {
      window.removeEventListener('focus', refresh);
      if (!hasLeft) draft.flush().finally(() => letGo());
      draft.close();
    },
    pressed: (key) => !isSubmitted && press(key, {form: form.element, draft, submit, lookup, columns}),
  };
}

const PARTS = {training: 'Training', test: 'Test'};

/** On a phone one of the two is shown. */
function switchParts(columns, lookup) {
  const parts = [['form', 'Annotation'], ['beside', lookup ? 'Pages' : 'Readings']];
  return make('div', {class: 'switch-parts', role: 'group', 'aria-label': 'Shown'}, parts.map(([name, label]) => {
    const choose = button(label, () => {
      columns.dataset.shown = name;
      for (const other of choose.parentElement.children) other.setAttribute('aria-pressed', String(other === choose));
    }, {class: 'plain', 'aria-pressed': String(name === 'form')});
    return choose;
  }));
}

/** A draft that was taken apart fills the form, its options tied to the readings in their order. */
function prefill({parsed}, draft, form) {
  if (!parsed) return;
  draft.change('lead', parsed.lead);
  draft.change('options', parsed.options.map((text, reading) => ({text, reading})));
  form.replace(draft.value);
}

function suggestion(value, use) {
  const answers = value.outcome === 'several' ? value.pairs.map((pair) => `${pair.question} — ${pair.answers[0]}`) : value.answers ?? [];
  return make('details', {class: 'context suggestion'}, make('summary', {}, 'What a system found'),
    make('ul', {class: 'plain-list'}, answers.map((text) => make('li', {}, text))), button('Start from this', () => use(value), {class: 'plain'}));
}

/** Two texts of one annotation: which of them is to stay. */
function askWhich(yours, theirs) {
  return new Promise((resolve) => {
    let choice = 'theirs';
    const choose = (name) => { choice = name; dialog.close(); };
    const part = (title, value) => make('section', {}, make('h3', {}, title), make('pre', {tabindex: '0', 'aria-label': title}, told(value)));
    const dialog = make('dialog', {class: 'sheet wide-sheet', 'aria-labelledby': 'stale-title'});
    append(dialog, [make('h2', {id: 'stale-title'}, 'This was changed in another window'),
      make('p', {}, 'Nothing is overwritten until you choose. The other text can still be had back with Undo.'),
      make('div', {class: 'side-by-side'}, part('Here', yours), part('There', theirs)),
      make('div', {class: 'row'}, button('Keep the one here', () => choose('yours'), {class: 'plain'}), button('Take the one there', () => choose('theirs'), {class: 'plain'}))]);
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    dialog.addEventListener('close', () => resolve(choice));
    present(dialog);
  });
}

/** What the keys do. */
function press(key, {form, draft, submit, lookup, columns}) {
  if (key === 'submit') return (submit(), true);
  if (key === 'u') return (draft.undo(), true);
  if (key === 'r') return (draft.redo(), true);
  if (key === '/' && lookup) {
    columns.dataset.shown = 'beside';
    return (lookup.focus(), true);
  }
  if (key === 'a') return click(visible(form, '[data-add]')[0]);
  if (key === 'y' || key === 'n') return pick(form, '[data-flag]', `input[value=${key}]`);
  return /^[1-9]$/.test(key) && pick(form, '[data-pick]', `.pick:nth-child(${key}) input`);
}

const visible = (form, selector) => [...form.querySelectorAll(selector)].filter((one) => one.offsetParent);

/** Choose in the group that has the focus, else in the first without a choice; the focus goes on to the next. */
function pick(form, groups, input) {
  const all = visible(form, groups);
  const focused = all.find((one) => one.contains(document.activeElement));
  const open = (one) => !one.querySelector('input:checked');
  const group = focused ?? all.find(open) ?? all[0];
  const done = click(group?.querySelector(input));
  const following = all.slice(all.indexOf(group) + 1).find(open);
  if (done && following) following.querySelector('input').focus();
  return done;
}

function click(element) {
  element?.focus();
  element?.click();
  return Boolean(element);
}
