// Two systems side by side on one question: what both find, and what only one does.
import {copy} from './actions.js';
import {Problem, shown, stream} from './api.js';
import {announce, button, count, fill, main, make} from './dom.js';
import {QuestionForm, examplesOf, indexOf} from './question.js';
import {readingEntry} from './readings.js';
import {Stages} from './stages.js';
import {trouble} from './trouble.js';

export function create(info, go) {
  return new CompareView(info, go);
}

class CompareView {
  constructor(info, go) {
    this.info = info;
    this.go = go;
    this.question = '';
  }

  draw() {
    document.title = 'Compare · whichsense';
    this.form = new QuestionForm({
      example: examplesOf(indexOf(this.info).corpus)[0], submit: (question) => this.ask(question),
    });
    const names = this.info.systems.map((one) => one.name);
    this.columns = [0, 1].map((place) => new Column(this.info.systems, names[place] ?? names[0], place,
      () => this.question && this.ask(this.question)));
    this.difference = make('p', {class: 'difference', role: 'status'});
    this.share = make('p', {class: 'compare-actions'});
    this.grid = make('div', {class: 'columns'}, this.columns.map((column) => column.element));
    this.results = make('div', {}, this.difference, this.grid, this.share);
    fill(main(), make('div', {class: 'view compare'},
      make('h1', {}, 'Compare'),
      make('p', {class: 'quiet'}, 'One question to two systems, over the same passages.'),
      names.length === 1 ? alone(names[0]) : [this.form.form, this.form.length, this.results]));
    this.form.measure();
    if (names.length > 1) this.form.field.focus({preventScroll: true});
  }

  /** Ask both at once. */
  async ask(question) {
    this.setQuestion(question);
    await this.run((column, onStage, signal) =>
      stream('/v1/ask', {question, system: column.system, ...(shown.index && {index: shown.index})}, onStage, {signal}));
    const [left, right] = this.columns;
    if (left.found && right.found) this.go(`/compare/${left.caseId}/${right.caseId}`);
  }

  /** Show two cases again, from their link. */
  async replay(...ids) {
    if (!this.results.isConnected) main().firstChild.append(this.results); // one system now, two when it was asked
    await this.run((column, onStage, signal) =>
      stream(`/v1/cases/${encodeURIComponent(ids[this.columns.indexOf(column)])}`, null, onStage, {signal}));
    const known = this.columns.find((column) => column.found);
    if (known) this.setQuestion(known.found.question);
  }

  async run(begin) {
    this.running?.abort();
    const {signal} = this.running = new AbortController();
    this.form.field.blur();
    fill(this.difference);
    fill(this.share);
    announce('Searching');
    await Promise.all(this.columns.map(async (column) => {
      await column.run(begin, signal, () => this.run(begin));
      if (!signal.aborted) this.align();
    }));
  }

  setQuestion(question) {
    this.question = question;
    this.form.set(question);
    document.title = `${question} · Compare · whichsense`;
  }

  /** Put equal answers beside each other; once both are there, say what differs. */
  align() {
    const rows = unionOf(this.columns);
    const isComplete = this.columns.every((column) => column.found);
    this.columns.forEach((column, place) => {
      const other = this.columns[1 - place];
      column.list.style.gridRow = `2 / span ${Math.max(rows.length, 1)}`;
      column.element.style.gridRow = `1 / span ${Math.max(rows.length, 1) + 1}`;
      column.show(this.question || column.found?.question, rows, isComplete ? other : null);
    });
    if (!isComplete) return;
    this.difference.textContent = differenceLine(this.columns);
    const said = make('span', {class: 'said quiet', role: 'status'});
    fill(this.share, button('Share', async () => {
      await copy(location.href);
      said.textContent = this.info.traces ? 'The link is copied.' : 'The link is copied. It lasts 15 minutes.';
    }, {class: 'link'}), ' ', said);
  }

  leave() {
    this.running?.abort();
  }

  pressed(key) {
    return key === '/' && this.form.field.isConnected && (this.form.focus(), true);
  }
}

/** One system: which it is, how far it is, what it found. */
class Column {
  constructor(systems, chosen, place, changed) {
    this.systems = systems;
    this.system = chosen;
    this.found = null;
    const label = place ? 'Second system' : 'First system';
    this.select = make('select', {'aria-label': label, onchange: () => { this.name(this.select.value); changed(); }});
    this.about = make('p', {class: 'quiet about'});
    this.place = make('div', {class: 'column-stages'});
    this.list = make('ol', {class: 'aligned'});
    this.element = make('section', {class: 'column', 'aria-label': `Answers of the ${place ? 'second' : 'first'}`},
      make('div', {class: 'column-head'}, this.select, this.about, this.place), this.list);
    this.name(chosen);
  }

  /** A system that is no longer served can still have answered. */
  name(system) {
    this.system = system;
    const names = new Set([...this.systems.map((one) => one.name), system]);
    fill(this.select, [...names].map((one) => make('option', {value: one, selected: one === system}, one)));
    this.about.textContent = this.systems.find((one) => one.name === system)?.about ?? '';
  }

  async run(begin, signal, again) {
    this.found = null;
    const stages = new Stages(this.system);
    fill(this.list);
    fill(this.place, stages.element);
    try {
      const data = await begin(this, (stage) => { if (!signal.aborted) stages.ended(stage); }, signal);
      if (signal.aborted) return;
      this.found = data.case;
      this.caseId = data.id;
      if (data.system) this.name(data.system);
      stages.finish(data.case);
      this.seconds = Object.values(data.case.spent).reduce((sum, cost) => sum + cost.seconds, 0);
      stages.doing.textContent = `${count(data.case.readings.length, 'reading')} in ${this.seconds.toFixed(1)} s`;
    } catch (problem) {
      stages.stop();
      if (signal.aborted) return;
      fill(this.place, trouble(problem, again));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  /** An entry for every row; `other` is the other column once both are there. */
  show(question, rows, other) {
    if (!this.found) return;
    fill(this.list, rows.map((key) => this.entry(question, key, other)));
    if (!this.found.readings.length && !rows.length) fill(this.list, make('li', {}, 'No answer was found.'));
  }

  entry(question, key, other) {
    const reading = readingOf(this.found.readings, key);
    if (reading) {
      const isAlone = other && !readingOf(other.found.readings, key);
      return make('li', {class: isAlone ? 'only' : null},
        isAlone && make('p', {class: 'only-line'}, make('mark', {}, `only ${this.system}`)),
        readingEntry(question, reading));
    }
    if (!other) return make('li', {class: 'absent'});
    const answer = readingOf(other.found.readings, key).answer;
    const isPossible = readingOf(this.found.possible, key);
    return make('li', {class: 'absent'},
      make('span', {class: 'answer'}, answer), isPossible ? ' is merely possible here.' : ' is not found here.');
  }
}

/** One system is served: how to add another. */
function alone(name) {
  return make('section', {class: 'alone'},
    make('h2', {}, 'One system is served'),
    make('p', {}, `This service answers with ${name} alone. Start it with a second one to see both side by side:`),
    make('pre', {}, make('code', {}, 'whichsense serve --compare systems/compact-shallow.toml')),
    make('p', {class: 'quiet'}, 'A system is a TOML file that names a provider or a model for each stage. '
      + 'Models that both use are loaded once.'));
}

/** What makes two answers the same here: letters and digits, without case, accents and articles. */
const keyOf = (reading) => reading.answer.normalize('NFKD').toLocaleLowerCase('en')
  .replace(/\p{M}/gu, '').replace(/\b(?:a|an|the)\b/g, ' ').replace(/[^\p{L}\p{N}]+/gu, ' ').trim();

const readingOf = (readings, key) => readings.find((one) => keyOf(one) === key);

/** The keys of all answers, in the order of the first column, then of the second. */
function unionOf(columns) {
  const readings = columns.flatMap((column) => column.found?.readings ?? []);
  return [...new Set(readings.map(keyOf))];
}

function differenceLine([left, right]) {
  const keys = (column) => new Set(column.found.readings.map(keyOf));
  const ours = keys(left);
  const theirs = keys(right);
  const both = [...ours].filter((key) => theirs.has(key)).length;
  const parts = [`${count(both, 'answer')} in both`];
  if (ours.size > both) parts.push(`${ours.size - both} only in ${left.system}`);
  if (theirs.size > both) parts.push(`${theirs.size - both} only in ${right.system}`);
  if (ours.size === both && theirs.size === both && both) parts[0] = `Both give the same ${count(both, 'answer')}`;
  const [slow, fast] = left.seconds > right.seconds ? [left, right] : [right, left];
  const less = (slow.seconds - fast.seconds).toFixed(1);
  if (less !== '0.0') parts.push(`${fast.system} took ${less} s less`);
  return parts.join(' · ');
}
