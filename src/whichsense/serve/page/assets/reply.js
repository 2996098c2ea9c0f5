// What a person says to an answer: options, all of them, none of them, words of their own.
import {Problem, stream} from './api.js';
import {announce, make} from './dom.js';
import {leadOf} from './talk.js';
import {troubleLine} from './trouble.js';

export class Replies {
  constructor(answer) {
    this.answer = answer;
    this.running = null; // of the reply that is under way
  }

  get talk() {
    return this.answer.talk;
  }

  stop() {
    this.running?.abort();
  }

  /** Options are chosen. What they stand for is known, and shown at once; the service then reads it again. */
  choose(options) {
    const {talk} = this;
    const [only] = options;
    const label = options.map((option) => option.label).join(', ');
    if (options.length === 1 && only.options.length && !talk.conversationId) {
      const question = `${leadOf(talk.clarification)}: ${only.label}?`;
      talk.clarification = {...talk.clarification, question, options: only.options};
      this.answer.show();
    } else if (!only.options.length) {
      this.choice(label, options.flatMap((option) => option.readings));
    }
    if (talk.conversationId) this.send({options: options.map((option) => option.id)}, label);
  }

  all() {
    const {clarification, found, conversationId} = this.talk;
    if (!clarification) return;
    this.choice('all of them', found.readings);
    if (conversationId) this.send({text: 'all of them'}, 'all of them');
  }

  none() {
    const {talk} = this;
    if (talk.conversationId || !talk.found.possible.length) {
      this.send({text: 'something else'}, 'something else');
    } else {
      talk.chosen = {label: 'something else', readings: talk.found.possible, isPossible: true};
      this.answer.show();
    }
  }

  choice(label, readings) {
    const {body, view} = this.answer;
    this.talk.message = '';
    this.talk.chosen = {label, readings};
    this.answer.show();
    announce(`${label}: ${readings.map((one) => one.answer).join(', ')}`);
    body.querySelector('.chosen-line button')?.focus({preventScroll: true});
    view.scrollIntoView({block: 'start'});
  }

  /** Say something in the conversation. */
  async send(body, label) {
    const {talk} = this;
    this.stop();
    const {signal} = this.running = new AbortController();
    const doing = talk.chosen ? 'Reading it once more …' : 'Thinking of what you said …';
    const waiting = make('p', {class: 'doing', role: 'status'}, doing);
    this.answer.body.prepend(waiting);
    try {
      const path = `/v1/conversations/${await this.conversation(signal)}/replies`;
      const {threshold} = talk.found.policy; // of a new question, too
      const data = await stream(path, {...body, threshold}, () => {}, {signal});
      if (!signal.aborted) this.turn(data, label);
    } catch (problem) {
      if (signal.aborted) return;
      waiting.replaceWith(troubleLine(problem));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  /** The id of the conversation. One that is not there yet is begun. */
  async conversation(signal) {
    const {talk} = this;
    const {threshold} = talk.found.policy;
    if (!talk.conversationId) {
      const begun = await stream('/v1/conversations', {question: talk.question, threshold}, () => {}, {signal});
      talk.conversationId = begun.id;
    }
    return talk.conversationId;
  }

  /** Show what the service says to a reply. */
  turn(data, label) {
    const turn = data.conversation.turns.at(-1);
    const {talk} = this;
    if (turn.intent.kind === 'question') {
      this.answer.onQuestion(data);
      return;
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
    this.answer.show();
    announce(talk.message || turn.readings.map((one) => one.answer).join(', '));
    if (talk.isPending) this.answer.body.querySelector('.reply')?.focus();
  }
}
