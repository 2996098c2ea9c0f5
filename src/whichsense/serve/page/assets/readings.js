// Readings: what each is about, its answer, how sure it is, its sources. Options and readings are one list.
import {announce, append, button, count, fill, freshId, make} from './dom.js';
import {cards} from './sources.js';
import {markedRewrite, tellingKeys} from './text.js';

const ALMOST_CERTAIN = 0.9;
const LIKELY = 0.5;

/** How sure, in words. */
export function sureness(reading, isPossible = false) {
  if (isPossible || reading.confidence < LIKELY) return 'possible';
  return reading.confidence >= ALMOST_CERTAIN ? 'almost certain' : 'likely';
}

/** What comes before an answer that is not probable; a score below 0 is no probability. */
export const perhaps = ({confidence}, isPossible = false) =>
  isPossible || (confidence >= 0 && confidence < LIKELY) ? 'Perhaps ' : '';

/** What tells a reading from others of the question: its rewrite, else its label, else its source. */
export function toldApart({question: rewrite, label, source}, question) {
  if (rewrite !== question) return rewrite;
  return label || (source && `from “${source}”`);
}

/** What the answer of an ambiguous question depends on: the category of its question back, if there is one. */
export function dependence(clarification) {
  const category = clarification?.category ?? 'one';
  return `This depends on ${['', 'one'].includes(category) ? 'what is meant' : `the ${category}`}.`;
}

export const leadOf = (clarification) => `${clarification.question.split(':')[0].replace(/[?\s]+$/, '')}?`;
export const same = (one, other) => one.answer === other.answer && one.question === other.question;

/** An answer with how sure it is: in plain type after “Perhaps” where it is not probable. */
function answerLine(tag, reading, isPossible) {
  const before = perhaps(reading, isPossible);
  return make(tag, {class: before ? 'answer unsure' : 'answer'}, before && make('i', {}, before), reading.answer);
}

function sureLine(reading, isPossible, tag = 'p') {
  const percent = Math.round(reading.confidence * 100);
  const bar = make('span', {class: 'bar', 'aria-hidden': 'true'}, make('span', {}));
  bar.firstChild.style.inlineSize = `${percent}%`;
  const words = sureness(reading, isPossible);
  return make(tag, {class: 'sure', 'data-sure': words, title: `${percent} of 100`}, bar, words,
    make('span', {class: 'voice'}, `, ${percent} of 100`));
}

function rewriteLine(question, reading) {
  const told = toldApart(reading, question);
  if (!told) return null;
  if (told === reading.question) return make('p', {class: 'rewrite'}, markedRewrite(question, told));
  return make('p', {class: 'rewrite'}, reading.label ? make('mark', {}, told) : make('span', {class: 'quiet'}, told));
}

const keysOf = (question, reading) => tellingKeys(question, `${reading.question} ${reading.label}`);

/** One reading with all that is known of it; `large` where it is the only answer. */
export function readingEntry(question, reading, {large = false, isPossible = false} = {}) {
  const isUnsure = large && perhaps(reading, isPossible);
  return make('div', {class: large ? 'reading large' : 'reading'},
    rewriteLine(question, reading), answerLine('h3', reading, isPossible), sureLine(reading, isPossible),
    isUnsure && make('p', {class: 'caution'}, 'Nothing here says it for sure: look at the source.'),
    cards(reading, keysOf(question, reading)));
}

/**
 * Readings as a list: each row has what it is about and its answer, and opens the rest of its reading. Rows are the
 * options of a question back, and after them what no option has. `chosen(rows)` is called where a person opens an option,
 * or adds one to those that are open.
 */
export class ReadingList {
  constructor(question, {options = [], readings = [], isPossible = false, chosen = null, hasNumbers = true}) {
    const offered = options.flatMap((option) => option.readings);
    const others = readings.filter((one) => !offered.some((other) => same(one, other)));
    const bare = others.map((reading) => ({id: '', label: '', readings: [reading], options: []}));
    Object.assign(this, {question, chosen});
    this.rows = [...options, ...bare].map((option, i) =>
      new Row(this, option, {number: hasNumbers ? i + 1 : 0, isPossible}));
    this.element = make('ol', {class: 'senses'}, this.rows.map((row) => row.element));
  }

  /** Show these options open, and no others. */
  open(ids) {
    for (const row of this.rows) row.open(ids.includes(row.option.id) || row.hasInner(ids), ids);
    this.offerMore();
  }

  openAll() {
    for (const row of this.rows) row.open(true);
    this.offerMore();
  }

  /** A person chooses these. */
  choose(rows) {
    this.open(rows.map((row) => row.option.id));
    this.chosen(rows);
    announce(rows.flatMap((row) => row.readings).map((one) => one.answer).join(', '));
  }

  get openRows() {
    return this.rows.filter((row) => row.isOption && !row.body.hidden);
  }

  /** What was chosen is chosen: from now on rows are opened to look at them. */
  close() {
    this.chosen = null;
    this.offerMore();
    for (const row of this.rows) row.inner?.close();
  }

  /** Beside an open option, each of the others can be added to it. */
  offerMore() {
    for (const row of this.rows) row.adder.hidden = !row.isOption || !row.body.hidden || !this.openRows.length;
  }
}

class Row {
  constructor(list, option, {number, isPossible}) {
    Object.assign(this, {list, option, isPossible});
    this.readings = option.readings;
    const id = freshId('reading');
    this.body = make('div', {class: 'body', id, hidden: true});
    this.button = make('button', {
      type: 'button', class: 'option', 'aria-expanded': 'false', 'aria-controls': id,
      'aria-keyshortcuts': number > 0 && number < 10 ? String(number) : null,
      onclick: () => this.press(),
    }, number > 0 && make('kbd', {'aria-hidden': 'true'}, String(number)), this.head());
    this.adder = button('and this', () => this.add(), {class: 'link add', hidden: true, 'aria-label': `and this: ${option.label}`});
    this.element = make('li', {class: 'sense'}, make('h3', {}, this.button), this.adder, this.body);
    if (option.options.length > 1) {
      this.inner = new ReadingList(list.question, {options: option.options, chosen: list.chosen, hasNumbers: false});
    }
  }

  /** Whether a person can choose it. */
  get isOption() {
    return Boolean(this.list.chosen && this.option.id);
  }

  /** What it is about, its answer, how sure. */
  head() {
    const {question} = this.list;
    const [first, ...others] = this.readings;
    const label = this.option.label || (first && toldApart(first, question));
    const answers = others.length
      ? make('span', {class: 'answer several'}, this.readings.map((one) => one.answer).join(' · '))
      : first && answerLine('span', first, this.isPossible);
    return make('span', {class: 'option-text'},
      label && make('span', {class: 'label'}, label), answers,
      !others.length && first && sureLine(first, this.isPossible, 'span'));
  }

  /** A person opens it, or closes it. */
  press() {
    const isOpening = this.body.hidden;
    if (isOpening && this.isOption) {
      this.list.choose([this]);
      return;
    }
    this.open(isOpening);
    this.list.offerMore();
    if (isOpening) announce(this.readings.map((one) => one.answer).join(', '));
  }

  /** A person means this one, too. */
  add() {
    if (this.adder.hidden) return;
    const {list} = this;
    list.choose(list.rows.filter((row) => row === this || list.openRows.includes(row)));
    this.button.focus({preventScroll: true});
  }

  open(isOpen, ids = []) {
    this.body.hidden = !isOpen;
    this.element.classList.toggle('open', isOpen);
    this.button.setAttribute('aria-expanded', String(isOpen));
    if (isOpen && !this.body.childElementCount) this.draw();
    if (isOpen) this.inner?.open(ids);
  }

  hasInner(ids) {
    return this.option.options.some((option) => ids.includes(option.id));
  }

  draw() {
    if (this.inner) {
      fill(this.body, this.inner.element);
      return;
    }
    const {question} = this.list;
    const {label} = this.option;
    fill(this.body, this.readings.map((reading) => append(make('div', {class: 'told'}), [
      reading.question !== question && make('p', {class: 'rewrite'}, markedRewrite(question, reading.question)),
      this.readings.length > 1 && answerLine('p', reading, this.isPossible),
      cards(reading, keysOf(question, {...reading, label: reading.label || label})),
    ])));
  }
}

/** What is merely possible, folded under one line. */
export function possibleFold(question, readings) {
  if (!readings.length) return null;
  return make('details', {class: 'fold'},
    make('summary', {}, `${count(readings.length, 'more reading')} merely possible`),
    new ReadingList(question, {readings, isPossible: true, hasNumbers: false}).element);
}
