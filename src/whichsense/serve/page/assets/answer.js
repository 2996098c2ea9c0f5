// What is shown for an answered question: the question back, or the readings, or why there is none.
import {actionBar} from './actions.js';
import {chosenLine, clarificationBlock, replyForm} from './clarify.js';
import {count, fill, make} from './dom.js';
import {perhaps, possibleFold, readingEntry, senses} from './readings.js';
import {Replies} from './reply.js';
import {StoryArea} from './story.js';
import {dependence, leadOf, nearestPassage, notesOf, same, whyNothing} from './talk.js';

const NEAREST = 3;

/** One answer. `place` has the service's info, the elements to draw in, and what to do with a new question. */
export class Answer {
  constructor(talk, {info, body, view, onQuestion}) {
    Object.assign(this, {talk, info, body, view, onQuestion});
    this.replies = new Replies(this);
    this.clarification = null;
  }

  /** Everything that is known of the question, as it stands. */
  show() {
    const {found, chosen, clarification} = this.talk;
    this.clarification = null;
    const parts = [notesOf(found)];
    if (!found.readings.length && !chosen) parts.push(this.nothing());
    else if (clarification && !chosen) parts.push(...this.asked());
    else parts.push(...this.answered());
    this.story = new StoryArea(this.talk, this.info.explains, () => this.replies.conversation());
    parts.push(this.story.element, actionBar(this.talk, this.info.traces));
    fill(this.body, ...parts.filter(Boolean));
  }

  /** Several readings: the question back first, and beneath it all of them. */
  asked() {
    const {found, question, clarification, message} = this.talk;
    this.clarification = clarificationBlock(clarification, {
      choose: (options) => this.replies.choose(options),
      all: () => this.replies.all(),
      none: () => this.replies.none(),
      say: (text) => this.replies.send({text}, text),
    });
    return [
      message && make('p', {class: 'message'}, message),
      this.clarification.element,
      make('section', {class: 'all', 'aria-label': 'All readings'},
        make('h2', {class: 'divider'}, dependence(clarification)), senses(question, found.readings)),
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
      !chosen && shown.length > 1 && make('h2', {class: 'divider'}, dependence(clarification)),
      shown.length === 1
        ? readingEntry(question, shown[0], {large: true, isPossible, before: isPossible ? '' : perhaps(shown)})
        : senses(question, shown, isPossible),
      chosen && !clarification && replyForm((text) => this.replies.send({text}, text)),
      rest.length > 0 && make('details', {class: 'fold'},
        make('summary', {}, `${count(rest.length, 'other reading')}`), senses(question, rest)),
      !isPossible && possibleFold(question, found.possible),
    ];
  }

  /** No answer: why, and the passages that come nearest. */
  nothing() {
    const {found, question, message, isPending} = this.talk;
    const nearest = found.hits.slice(0, NEAREST).map(({passage}) => nearestPassage(question, passage));
    return make('section', {class: 'nothing'},
      make('h2', {}, 'No answer here'),
      make('p', {}, message || whyNothing(found)),
      nearest.length > 0 && make('h3', {class: 'divider'}, 'What comes nearest'),
      nearest.length > 0 && make('ul', {class: 'nearest'}, nearest),
      isPending && replyForm((text) => this.replies.send({text}, text), 'Say it in other words'));
  }

  /** Back to the question that was chosen for. */
  change() {
    this.talk.chosen = null;
    this.talk.message = '';
    this.show();
    this.clarification?.heading.focus();
  }

  /** Another question is asked: what is under way here is of no use any more. */
  stop() {
    this.replies.stop();
  }

  pressed(key) {
    if (/^[1-9]$/.test(key) && this.clarification) return this.clarification.press(Number(key)), true;
    if (key === 'a' && this.clarification) return this.replies.all(), true;
    if (key === 'e') return this.story.tell(), true;
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
