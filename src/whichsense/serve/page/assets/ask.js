// The page on which one asks.
import {get, post, Problem, stream} from './api.js';
import {actionBar} from './actions.js';
import {chosenLine, clarificationBlock, replyForm} from './clarify.js';
import {announce, button, count, fill, main, make} from './dom.js';
import {remember} from './history.js';
import {possibleFold, readingEntry, senses} from './readings.js';
import {Stages} from './stages.js';
import {storyBlock} from './story.js';
import {corpusLine, leadOf, nearestPassage, notesOf, same, summary, talkOf, whyNothing} from './talk.js';
import {trouble, troubleLine} from './trouble.js';

const LONGEST = 2000;
const NEAREST = 3;
// Ambiguous questions of the embedded corpora; of another corpus nothing is known.
const EXAMPLES = {
  sample: ['Who played the Joker?', 'When was St. Petersburg founded?', 'How tall is the Statue of Liberty?',
    'What is the capital of Brazil?'],
  handbook: ['What is the annual leave entitlement at Kelvane?', 'When does the canteen in Brantholm close?',
    'How far back does the history in Morwen go?', 'How many appliances does Safety Notice 3/2025 affect?'],
};

/** The view: what is asked, what is shown for it, and what the keys do. */
export class AskView {
  constructor(info, go) {
    this.info = info;
    this.go = go; // changes the address
    this.talk = null;
    this.running = null; // of the request that is under way
  }

  draw() {
    const examples = EXAMPLES[this.info.corpus] ?? [];
    this.example = examples[0] ?? '';
    this.field = make('textarea', {
      id: 'question', rows: 1, autocomplete: 'off', enterkeyhint: 'search', 'aria-describedby': 'corpus',
      placeholder: this.example || 'Ask a question',
      oninput: () => this.measure(),
      onkeydown: (event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.submit();
        }
      },
    });
    this.length = make('p', {class: 'length', id: 'length', role: 'status'});
    this.results = make('div', {class: 'results'});
    this.view = make('div', {class: 'ask empty'},
      make('form', {class: 'question', onsubmit: (event) => { event.preventDefault(); this.submit(); }},
        make('label', {for: 'question', class: 'voice'}, 'Your question'),
        this.field, make('button', {class: 'go'}, 'Ask')),
      this.length,
      make('p', {class: 'corpus quiet', id: 'corpus'}, corpusLine(this.info)),
      examples.length > 1 && make('ul', {class: 'examples'}, examples.slice(1).map((text) =>
        make('li', {}, button(text, () => this.ask(text), {class: 'link'})))),
      this.results);
    fill(main(), this.view);
    this.measure();
    document.title = 'whichsense';
  }

  measure() {
    // An empty field is as high as its grey example.
    this.field.style.blockSize = '';
    this.field.style.blockSize = `${this.field.scrollHeight}px`;
    const size = Array.from(this.field.value.trim()).length;
    const over = size > LONGEST;
    this.view.classList.toggle('too-long', over);
    this.length.textContent = over
      ? `${size.toLocaleString('en')} characters. A question may have ${LONGEST.toLocaleString('en')}: say it in fewer words.`
      : '';
    return !over;
  }

  submit() {
    const question = this.field.value.trim() || this.example;
    if (!question) return;
    if (this.measure()) this.ask(question);
    else this.field.focus();
  }

  /** Ask, and show each stage as it ends. */
  async ask(question) {
    await this.follow(question, () => this.stream('/v1/conversations', {question}));
  }

  /** Show a case again, from its link. */
  async replay(caseId) {
    await this.follow('', () => this.stream(`/v1/cases/${encodeURIComponent(caseId)}`, null), caseId);
  }

  async follow(question, begin, caseId = '') {
    this.running?.abort();
    const running = this.running = new AbortController();
    this.view.classList.remove('empty');
    this.field.blur(); // the keys 1–9 choose from now on
    this.talk = null;
    if (question) this.setQuestion(question);
    this.stages = new Stages();
    this.body = make('div', {class: 'answer-area'});
    fill(this.results, this.stages.element, this.body);
    announce('Searching');
    try {
      const data = await begin();
      if (running.signal.aborted) return;
      this.talk = talkOf(data, caseId);
      this.setQuestion(this.talk.question);
      this.stages.finish(this.talk.found);
      remember(this.talk);
      this.go(`/q/${this.talk.caseId}`, caseId !== '');
      this.show();
      announce(summary(this.talk.found));
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
    return stream(path, body, (stage) => { if (!signal.aborted) this.stages.ended(stage); }, signal);
  }

  setQuestion(question) {
    this.field.value = question;
    this.measure();
    document.title = `${question} · whichsense`;
  }

  /** Everything that is known of the question, as it stands. */
  show() {
    const {found, chosen} = this.talk;
    this.clarification = null;
    const parts = [notesOf(found)];
    if (!found.readings.length && !chosen) parts.push(this.nothing());
    else if (this.talk.clarification && !chosen) parts.push(...this.asked());
    else parts.push(...this.answered());
    this.story = make('div', {class: 'story-area'});
    parts.push(this.storyArea(), actionBar(this.talk, this.info.traces));
    fill(this.body, ...parts.filter(Boolean));
  }

  /** Several readings: the question back first, and beneath it all of them. */
  asked() {
    const {found, question, clarification, message} = this.talk;
    this.clarification = clarificationBlock(clarification, {
      choose: (options) => this.choose(options),
      all: () => this.all(),
      none: () => this.none(),
      say: (text) => this.reply({text}, text),
    });
    return [
      message && make('p', {class: 'message'}, message),
      this.clarification.element,
      make('section', {class: 'all', 'aria-label': 'All readings'},
        make('h2', {class: 'divider'}, count(found.readings.length, 'reading')), senses(question, found.readings)),
      possibleFold(question, found.possible),
    ];
  }

  /** What was meant, or all that there is. */
  answered() {
    const {found, question, clarification, chosen, message} = this.talk;
    const shown = chosen?.readings ?? found.readings;
    const rest = found.readings.filter((one) => !shown.some((other) => same(one, other)));
    const isPossible = Boolean(chosen?.isPossible);
    return [
      chosen && clarification && chosenLine(leadOf(clarification), chosen.label, () => this.change()),
      message && make('p', {class: 'message'}, message),
      shown.length === 1
        ? readingEntry(question, shown[0], {large: true, isPossible})
        : senses(question, shown, isPossible),
      chosen && !clarification && replyForm((text) => this.reply({text}, text)),
      rest.length > 0 && make('details', {class: 'fold'},
        make('summary', {}, `${count(rest.length, 'other reading')}`), senses(question, rest)),
      !isPossible && possibleFold(question, found.possible),
    ];
  }

  /** No answer: why, and the passages that come nearest. */
  nothing() {
    const {found, question, message} = this.talk;
    const nearest = found.hits.slice(0, NEAREST).map(({passage}) => nearestPassage(passage));
    return make('section', {class: 'nothing'},
      make('h2', {}, 'No answer here'),
      make('p', {}, message || whyNothing(found)),
      nearest.length > 0 && make('h3', {class: 'divider'}, 'What comes nearest'),
      nearest.length > 0 && make('ul', {class: 'nearest'}, nearest),
      possibleFold(question, found.possible),
      this.talk.isPending && replyForm((text) => this.reply({text}, text), 'Say it in other words'));
  }

  /** Options are chosen. What they stand for is known, and shown at once; the service then reads it again. */
  choose(options) {
    const [only] = options;
    const label = options.map((option) => option.label).join(', ');
    if (options.length === 1 && only.options.length && !this.talk.conversationId) {
      const {clarification} = this.talk;
      this.talk.clarification = {...clarification, question: `${leadOf(clarification)}: ${only.label}?`, options: only.options};
      this.show();
    } else if (!only.options.length) {
      this.choice(label, options.flatMap((option) => option.readings));
    }
    if (this.talk.conversationId) this.reply({options: options.map((option) => option.id)}, label);
  }

  all() {
    const {clarification, found} = this.talk;
    if (!clarification) return;
    this.choice('all of them', found.readings);
    if (this.talk.conversationId) this.reply({text: 'all of them'}, 'all of them');
  }

  none() {
    if (this.talk.conversationId || !this.talk.found.possible.length) {
      this.reply({text: 'something else'}, 'something else');
    } else {
      this.talk.chosen = {label: 'something else', readings: this.talk.found.possible, isPossible: true};
      this.show();
    }
  }

  choice(label, readings) {
    this.talk.message = '';
    this.talk.chosen = {label, readings};
    this.show();
    announce(`${label}: ${readings.map((one) => one.answer).join(', ')}`);
    this.body.querySelector('.chosen-line button')?.focus({preventScroll: true});
    this.view.scrollIntoView({block: 'start'});
  }

  change() {
    this.talk.chosen = null;
    this.talk.message = '';
    this.show();
    this.clarification?.heading.focus();
  }

  /** Say something in the conversation. One that is not there yet is begun first. */
  async reply(body, label) {
    const talk = this.talk;
    this.running?.abort();
    const {signal} = this.running = new AbortController();
    const waiting = make('p', {class: 'doing', role: 'status'}, talk.chosen ? 'Reading it once more …' : 'Thinking of what you said …');
    this.body.prepend(waiting);
    try {
      const path = `/v1/conversations/${await this.conversation(talk, signal)}/replies`;
      const data = await stream(path, body, () => {}, signal);
      if (signal.aborted || this.talk !== talk) return;
      this.turn(data, label);
    } catch (problem) {
      if (signal.aborted) return;
      waiting.replaceWith(troubleLine(problem));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  async conversation(talk, signal) {
    if (!talk.conversationId) {
      const begun = await stream('/v1/conversations', {question: talk.question}, () => {}, signal);
      talk.conversationId = begun.id;
    }
    return talk.conversationId;
  }

  /** Show what the service says to a reply. */
  turn(data, label) {
    const turn = data.conversation.turns.at(-1);
    const {talk} = this;
    if (turn.intent.kind === 'question') {
      this.talk = talkOf(data);
      this.setQuestion(this.talk.question);
      this.stages.finish(this.talk.found);
      remember(this.talk);
      this.go(`/q/${this.talk.caseId}`);
      return this.show();
    }
    talk.message = turn.message;
    talk.isPending = turn.shown === 'more';
    if (turn.shown === 'clarification') {
      talk.clarification = turn.clarification;
      talk.chosen = null;
    } else if (turn.readings.length) {
      talk.chosen = {label, readings: turn.readings, isPossible: turn.shown === 'possible'};
      if (talk.chosen.isPossible) talk.message ||= 'None of those. This is merely possible:';
    } else {
      talk.chosen = null;
      talk.message ||= 'Nothing here fits that. Say one more word about what you mean.';
    }
    this.show();
    announce(talk.message || turn.readings.map((one) => one.answer).join(', '));
    if (talk.isPending) this.body.querySelector('.reply')?.focus();
  }

  storyArea() {
    const {talk} = this;
    if (talk.story) this.story.append(storyBlock(talk.story).element);
    else if (this.info.explains && talk.found.readings.length) {
      this.story.append(make('button', {type: 'button', class: 'tell', onclick: () => this.tell(), 'aria-keyshortcuts': 'e'},
        'Tell the whole story ', make('kbd', {'aria-hidden': 'true'}, 'e')));
    }
    return this.story;
  }

  /** The whole story, with a source for every sentence. */
  async tell() {
    const {talk} = this;
    if (!talk || talk.story || !talk.found.readings.length || !this.info.explains) return;
    const waiting = make('p', {class: 'doing', role: 'status'}, 'Writing it, with a source for every sentence …');
    fill(this.story, waiting);
    try {
      const path = `/v1/conversations/${await this.conversation(talk)}/replies`;
      const data = await post(path, {explain: true});
      talk.story = data.conversation.turns.at(-1).long_answer;
      if (this.talk !== talk) return;
      const {element, heading} = storyBlock(talk.story);
      fill(this.story, element);
      heading.focus();
    } catch (problem) {
      fill(this.story, troubleLine(problem), button('Try again', () => this.tell(), {class: 'plain'}));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  pressed(key) {
    if (key === '/') return this.field.focus(), this.field.select(), true;
    if (!this.talk) return false;
    if (/^[1-9]$/.test(key) && this.clarification) return this.clarification.press(Number(key)), true;
    if (key === 'a' && this.clarification) return this.all(), true;
    if (key === 'e') return this.tell(), true;
    if (key === 's') return this.toggleSources(), true;
    return false;
  }

  /** Open the first source of everything that is shown; close all where all are open. */
  toggleSources() {
    const links = Array.from(this.body.querySelectorAll('.source-link')).filter((one) => one.offsetParent);
    const closed = links.filter((one) => one.getAttribute('aria-expanded') === 'false');
    for (const link of closed.length ? closed : links) link.click();
  }
}

/** What the service says of itself; until it can be reached, nothing. */
export async function learnInfo() {
  try {
    return await get('/v1/info');
  } catch {
    return {corpus: '', passages: 0, explains: true, clarifies: true, traces: true};
  }
}
