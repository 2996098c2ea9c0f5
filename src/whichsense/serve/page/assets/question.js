// The field in which a question is written, and what is chosen with it: the corpus, how probable an answer must be.
import {shown} from './api.js';
import {button, count, fill, make} from './dom.js';

const LONGEST = 2000;
// Questions to the embedded corpora; of another corpus nothing is known.
const EXAMPLES = {
  sample: ['Who played the Joker?', 'When was St. Petersburg founded?', 'How tall is the Statue of Liberty?',
    'What is the capital of Brazil?'],
  handbook: ['Where did the works committee decide to move the paint shop?', 'How much water does the Skerry 24 extract a day?',
    'Who is on call for Morwen in the week of 12 May?', 'How many books can be borrowed at a time from the Pendrake library?'],
};
export const examplesOf = (corpus) => EXAMPLES[corpus] ?? [];

/** A form with a question. `submit(question)` is called with what is written, or with the grey example. */
export class QuestionForm {
  constructor({submit, example = '', placeholder = example || 'Ask a question', label = 'Your question', isFollowUp = false}) {
    this.example = example;
    this.submitted = submit;
    this.field = make('textarea', {
      id: 'question', rows: 1, autocomplete: 'off', enterkeyhint: 'search', placeholder,
      oninput: () => this.measure(),
      onkeydown: (event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.submit();
        }
      },
    });
    this.length = make('p', {class: 'length', id: 'length', role: 'status'});
    this.form = make('form', {
      class: isFollowUp ? 'question follow-up' : 'question',
      onsubmit: (event) => { event.preventDefault(); this.submit(); },
    }, make('label', {for: 'question', class: 'voice'}, label), this.field, make('button', {class: 'go'}, 'Ask'));
    let width = 0;
    new ResizeObserver(([{contentRect}]) => {
      if (contentRect.width !== width) this.measure();
      ({width} = contentRect);
    }).observe(this.form);
  }

  /** Fit the field to what is written; gives whether it can be asked. */
  measure() {
    this.field.style.blockSize = '';
    this.field.style.blockSize = `${this.field.scrollHeight}px`;
    const size = Array.from(this.field.value.trim()).length;
    const over = size > LONGEST;
    this.form.classList.toggle('too-long', over);
    this.length.textContent = over
      ? `${size.toLocaleString('en')} characters. A question may have ${LONGEST.toLocaleString('en')}: say it in fewer words.`
      : '';
    return !over;
  }

  submit() {
    const question = this.field.value.trim() || this.example;
    if (!question) return;
    if (this.measure()) this.submitted(question);
    else this.field.focus();
  }

  set(question) {
    this.field.value = question;
    this.measure();
  }

  focus() {
    this.field.focus();
    this.field.select();
  }
}

/** The index that is shown, as the service describes it. */
export const indexOf = ({indexes}) => indexes.find((one) => one.name === shown.index) ?? indexes.find((one) => one.default) ?? {};

/** The name of the index that is shown; where there are several, a choice. `changed()` is called when it is another. */
export function indexChoice(info, changed) {
  const {name = '', corpus} = indexOf(info);
  if (info.indexes.length < 2) return corpus;
  const select = make('select', {class: 'inline-choice', 'aria-label': 'Which corpus', onchange: () => { shown.index = select.value; changed(); }},
    info.indexes.map((one) => make('option', {value: one.name, selected: one.name === name}, one.name)));
  return select;
}

// How probable an answer must be to be shown: by default, the service chooses.
const THRESHOLDS = [['', 'probable enough'], ['0.1', 'barely possible, too'], ['0.5', 'likely'], ['0.9', 'almost certain']];

/** What is chosen with a question. The address keeps it; `changed()` is called when it is another. */
export class Settings {
  constructor(info, changed) {
    this.info = info;
    this.changed = changed;
    const asked = new URLSearchParams(location.search);
    if (asked.get('index')) shown.index = asked.get('index');
    const given = Number(asked.get('threshold'));
    this.threshold = given > 0 && given <= 1 ? given : null;
    this.element = make('p', {class: 'settings quiet'});
  }

  /** What a question says of it; a reply is about the index of its thread. */
  get body() {
    return {threshold: this.threshold, ...(shown.index && {index: shown.index})};
  }

  /** What an address says of it; that of a thread says no index. */
  query(hasIndex = false) {
    const query = new URLSearchParams({
      ...(hasIndex && shown.index && {index: shown.index}), ...(this.threshold !== null && {threshold: this.threshold}),
    });
    return query.size ? `?${query}` : '';
  }

  /** Draw it anew; `isOpen`: another index may be chosen. */
  draw(isOpen) {
    const {corpus, passages = 0} = indexOf(this.info);
    fill(this.element,
      corpus && make('span', {class: 'corpus'}, 'Asked of the ', isOpen ? indexChoice(this.info, this.changed) : corpus, ' corpus, ',
        count(passages, 'passage'), '.'),
      make('label', {}, 'Show what is ', this.thresholds()));
    return this.element;
  }

  thresholds() {
    const chosen = this.threshold === null ? '' : String(this.threshold);
    const known = THRESHOLDS.some(([value]) => value === chosen);
    const own = known ? [] : [[chosen, `at least ${Math.round(100 * this.threshold)} in 100`]];
    const select = make('select', {
      id: 'threshold', class: 'inline-choice', onchange: () => { this.threshold = select.value ? Number(select.value) : null; this.changed(); },
    }, [...THRESHOLDS, ...own].map(([value, label]) => make('option', {value, selected: value === chosen}, label)));
    return select;
  }
}

/** Examples of questions, each a button. */
export function exampleList(examples, ask) {
  return make('ul', {class: 'examples'}, examples.map((text) => make('li', {}, button(text, () => ask(text), {class: 'link'}))));
}
