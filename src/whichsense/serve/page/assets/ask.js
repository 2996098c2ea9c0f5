// The page on which one asks.
import {Problem, stream} from './api.js';
import {Answer} from './answer.js';
import {announce, button, fill, main, make} from './dom.js';
import {remember} from './history.js';
import {QuestionForm} from './question.js';
import {Stages} from './stages.js';
import {corpusLine, summary, talkOf} from './talk.js';
import {Threshold} from './threshold.js';
import {trouble} from './trouble.js';

// Questions to the embedded corpora; of another corpus nothing is known.
export const EXAMPLES = {
  sample: ['Who played the Joker?', 'When was St. Petersburg founded?', 'How tall is the Statue of Liberty?',
    'What is the capital of Brazil?'],
  handbook: ['Where did the works committee decide to move the paint shop?', 'How much water does the Skerry 24 extract a day?',
    'Who is on call for Morwen in the week of 12 May?', 'How many books can be borrowed at a time from the Pendrake library?'],
};

/** The view: what is asked, the stages of it, and its answer. */
export class AskView {
  constructor(info, go) {
    this.info = info;
    this.go = go; // changes the address
    this.answer = null;
    this.running = null; // of the request that is under way
  }

  draw() {
    const examples = EXAMPLES[this.info.corpus] ?? [];
    this.form = new QuestionForm({
      example: examples[0], describedBy: 'corpus', submit: (question) => this.ask(question),
    });
    this.threshold = new Threshold(() => this.restrict());
    this.results = make('div', {class: 'results'});
    this.view = make('div', {class: 'ask empty'},
      this.form.form, this.form.length, this.threshold.element,
      make('p', {class: 'corpus quiet', id: 'corpus'}, corpusLine(this.info)),
      examples.length > 1 && make('ul', {class: 'examples'}, examples.slice(1).map((text) =>
        make('li', {}, button(text, () => this.ask(text), {class: 'link'})))),
      this.results);
    fill(main(), this.view);
    this.form.measure();
    document.title = 'whichsense';
  }

  /** Ask, and show each stage as it ends. */
  async ask(question) {
    const threshold = this.threshold.value;
    await this.follow(question, () => this.stream('/v1/conversations', {question, threshold}));
  }

  /** Another threshold: it is kept in the address, and what is asked is asked again. */
  async restrict() {
    this.go(location.pathname + this.threshold.query, true);
    if (this.answer) await this.ask(this.answer.talk.question);
  }

  /** Show a case again, from its link. */
  async replay(caseId) {
    await this.follow('', () => this.stream(`/v1/cases/${encodeURIComponent(caseId)}`, null), caseId);
  }

  async follow(question, begin, caseId = '') {
    this.running?.abort();
    this.answer?.stop();
    const running = this.running = new AbortController();
    this.view.classList.remove('empty');
    this.form.field.blur(); // the keys 1–9 choose from now on
    this.answer = null;
    if (question) this.setQuestion(question);
    this.stages = new Stages();
    this.body = make('div', {class: 'answer-area'});
    fill(this.results, this.stages.element, this.body);
    announce('Searching');
    try {
      const data = await begin();
      if (running.signal.aborted) return;
      this.present(talkOf(data, caseId), caseId !== '');
      announce(summary(this.answer.talk.found));
    } catch (problem) {
      if (running.signal.aborted) return;
      this.stages.stop();
      this.stages.element.remove();
      this.body.append(trouble(problem, () => this.follow(question, begin, caseId)));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  stream(path, body) {
    const {signal} = this.running;
    return stream(path, body, (stage) => { if (!signal.aborted) this.stages.ended(stage); }, {signal});
  }

  /** What was asked is answered: show it, and give it its address. */
  present(talk, isSameAddress = false) {
    this.setQuestion(talk.question);
    this.stages.finish(talk.found);
    remember(talk);
    this.go(`/q/${talk.caseId}${this.threshold.query}`, isSameAddress);
    this.answer = new Answer(talk, {
      info: this.info,
      body: this.body,
      view: this.view,
      onQuestion: (data) => this.present(talkOf(data)),
    });
    this.answer.show();
  }

  setQuestion(question) {
    this.form.set(question);
    document.title = `${question} · whichsense`;
  }

  focus() {
    this.form.field.focus({preventScroll: true});
  }

  pressed(key) {
    if (key === '/') return this.form.focus(), true;
    return this.answer?.pressed(key) ?? false;
  }
}
