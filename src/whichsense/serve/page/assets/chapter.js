// One question of a thread: its answer, or the question back with its readings; and what was said to it.
import {actionBar} from './actions.js';
import {announce, append, button, count, fill, make} from './dom.js';
import {ReadingList, dependence, leadOf, possibleFold, readingEntry, same} from './readings.js';
import {nearCard} from './sources.js';
import {storyBlock} from './story.js';

const NEAREST = 3;
const MOST_SUGGESTIONS = 4;

/** The questions of a conversation, each with the turns that followed: [{turn, replies}]. */
export function chaptersOf(turns) {
  const found = [];
  for (const turn of turns) {
    if (turn.intent.kind === 'question' || !found.length) found.push({turn, replies: []});
    else found.at(-1).replies.push(turn);
  }
  return found;
}

/** A case as the turns of a conversation that has just begun. */
export function turnsOf({question, readings, clarification, long_answer: story}) {
  const told = {intent: {kind: 'skip', options: [], question: ''}, said: '', message: '', readings: [], clarification: null};
  const shown = clarification ? 'clarification' : readings.length ? 'readings' : 'nothing';
  const turn = {...told, said: question, intent: {kind: 'question', options: [], question}, shown, readings, clarification};
  return story ? [turn, {...told, shown: 'explanation', long_answer: story}] : [turn];
}

/** What was found, as one line for those who hear it. */
export function summary(readings) {
  if (!readings.length) return 'No answer was found.';
  return `${count(readings.length, 'reading')}: ${readings.map((one) => one.answer).join(', ')}`;
}

export class Chapter {
  /**
   * `thread`: what is done when somebody chooses, says something, wants the story; `found`: the case, where it is known;
   * `stages`: of the request that answered it.
   */
  constructor(turn, {thread, isFirst, found = null, stages = null}) {
    Object.assign(this, {turn, thread, found});
    this.question = turn.intent.question || turn.said;
    this.replies = [];
    this.list = null;
    this.heading = make(isFirst ? 'h1' : 'h2', {class: 'asked', tabindex: '-1'}, turn.said || this.question);
    this.after = make('div', {class: 'after'}); // what was said to the answer
    this.aside = make('aside', {class: 'beside', 'aria-label': 'The whole story'});
    this.actions = make('div', {});
    this.column = make('div', {class: 'column'}, this.heading, readAs(turn, this.question), stages,
      this.notes(), turn.message && make('p', {class: 'message'}, turn.message), this.body(), this.after, this.actions);
    this.element = make('article', {class: 'chapter'}, this.column, this.aside);
    this.showActions();
  }

  notes() {
    if (!this.found) return null;
    const notes = [...this.found.notes];
    if (this.found.stopped === 'deadline') notes.unshift('Time ran out. This is what was found by then; ask again for more.');
    return notes.length > 0 && make('div', {class: 'notes'}, notes.map((note) => make('p', {}, note)));
  }

  /** The answer, the readings with the question back, or why there is none. */
  body() {
    const {turn, question} = this;
    const {clarification, readings} = turn;
    const possible = possibleFold(question, this.found?.possible ?? []);
    if (!readings.length && !clarification) return [this.nothing(), possible];
    if (readings.length === 1 && !clarification) return [readingEntry(question, readings[0], {large: true}), possible];
    this.list = new ReadingList(question, {
      options: clarification?.options, readings, chosen: (rows) => this.thread.choose(rows),
    });
    const isAsking = turn.shown === 'clarification';
    this.lead = make('h2', {class: 'lead'}, isAsking ? leadOf(clarification) : dependence(clarification));
    this.choices = clarification && make('p', {class: 'row choices'},
      make('button', {type: 'button', class: 'plain', onclick: () => this.thread.chooseAll(this), 'aria-keyshortcuts': 'a'},
        'All of them ', make('kbd', {'aria-hidden': 'true'}, 'a')),
      button('Something else', () => this.thread.say('something else'), {class: 'plain'}));
    // The question named one of the options by itself.
    if (turn.shown === 'answer') this.list.open(this.optionsWith(readings));
    return [this.lead, this.list.element, this.choices, possible];
  }

  optionsWith(readings) {
    const has = (option) => option.readings.some((one) => readings.some((other) => same(one, other)));
    return (this.turn.clarification?.options ?? []).filter(has).map((option) => option.id);
  }

  /** No answer: why, and the passages that come nearest. */
  nothing() {
    const hits = this.found?.hits ?? [];
    return make('section', {class: 'nothing'},
      make('h3', {}, 'No answer here'),
      this.found && make('p', {}, whyNothing(this.found)),
      hits.length > 0 && make('h4', {class: 'divider'}, 'What comes nearest'),
      hits.slice(0, NEAREST).map(({passage}) => nearCard(this.question, passage)));
  }

  /** Show what followed, as far as it is not shown yet. */
  follow(replies) {
    for (const reply of replies.slice(this.replies.length)) {
      this.replies.push(reply);
      this.take(reply);
    }
  }

  take(reply) {
    const {kind, options} = reply.intent;
    const isChoice = this.list && ['choose', 'all'].includes(kind) && ['answer', 'clarification'].includes(reply.shown);
    if (reply.shown === 'explanation') this.tell(reply.long_answer);
    else if (isChoice) {
      if (kind === 'all') this.list.openAll();
      else this.list.open(options);
    } else if (this.list && reply.shown === 'readings') append(this.after, [this.replied({...reply, readings: []})]);
    else append(this.after, [this.replied(reply)]);
  }

  /** A reply that no option stands for: what was said, and what is shown for it. */
  replied({said, message, shown, readings}) {
    const isPossible = shown === 'possible';
    const words = message || (isPossible ? 'None of those. This is merely possible:' : '')
      || (shown === 'more' ? 'Nothing here fits that. Say one more word about what you mean.' : '');
    const list = readings.length > 1 && new ReadingList(this.question, {readings, isPossible, hasNumbers: false});
    return make('section', {class: 'reply'},
      said && make('p', {class: 'said-line'}, said), words && make('p', {class: 'message'}, words),
      readings.length === 1 ? readingEntry(this.question, readings[0], {large: true, isPossible}) : list?.element);
  }

  tell(longAnswer) {
    this.story = longAnswer;
    const {element, heading} = storyBlock(longAnswer);
    fill(this.aside, element);
    this.teller?.remove();
    return heading;
  }

  /** What can be done with the answer, at the end of the thread only. */
  showActions() {
    const {info, caseId} = this.thread;
    if (!this.found) return;
    const canTell = info.explains && this.found.readings.length > 0 && !this.story;
    this.teller = canTell && make('button', {type: 'button', class: 'tell', onclick: () => this.thread.tell(this), 'aria-keyshortcuts': 'e'},
      'Tell the whole story ', make('kbd', {'aria-hidden': 'true'}, 'e'));
    const chapter = this;
    const shown = {question: this.question, found: this.found, caseId, get story() { return chapter.story; }};
    // Beside the ways to choose, where there are any.
    if (this.teller) (this.choices ?? this.actions).append(this.teller);
    append(this.actions, [actionBar(shown, info.traces)]);
  }

  /** A question after it is asked: what can be done is done there. */
  close() {
    this.list?.close();
    fill(this.actions);
    this.choices?.remove();
  }

  press(number) {
    this.list?.rows[number - 1]?.button.click();
  }

  add(number) {
    this.list?.rows[number - 1]?.add();
  }

  /** Open the first source of everything that is shown; close all where all are open. */
  toggleSources() {
    const links = Array.from(this.element.querySelectorAll('.source-link')).filter((one) => one.offsetParent);
    const closed = links.filter((one) => one.getAttribute('aria-expanded') === 'false');
    for (const link of closed.length ? closed : links) link.click();
  }
}

/** What a question that leans on what was said before was read as. */
function readAs({said}, question) {
  const bare = (text) => text.toLocaleLowerCase('en').replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
  return said && bare(said) !== bare(question) && make('p', {class: 'read-as quiet'}, 'Read as: ', make('q', {}, question));
}

function whyNothing(found) {
  if (!found.hits.length) return 'No passage of this corpus has the words of the question. Ask with other words.';
  const percent = Math.round((found.answerable ?? 0) * 100);
  const chance = found.answerable === null ? '' : ` (the chance that they do is ${percent} in 100)`;
  return `${count(found.hits.length, 'passage')} came near, but they probably hold no answer${chance}.`;
}

/**
 * What may be asked next: the last question about what another option of an earlier chapter stands for, [{label, text}].
 * A follow-up is read as a question about the title or the label that was chosen: the others take its place.
 */
export function suggestions(chapters) {
  const last = chapters.at(-1);
  const options = chapters.slice(0, -1).findLast((one) => one.turn.clarification)?.turn.clarification.options ?? [];
  const lower = last.question.toLocaleLowerCase('en');
  const named = options.flatMap((option) => namesOf(option).map((name) => ({option, name})))
    .filter(({name}) => lower.includes(name.toLocaleLowerCase('en')))
    .sort((one, other) => other.name.length - one.name.length)[0];
  if (!named || !last.turn.readings.length) return [];
  const start = lower.indexOf(named.name.toLocaleLowerCase('en'));
  const end = start + named.name.length;
  return options.filter((option) => option !== named.option && titleOf(option)).slice(0, MOST_SUGGESTIONS)
    .map((option) => ({label: option.label, text: last.question.slice(0, start) + titleOf(option) + last.question.slice(end)}));
}

const titleOf = (option) => option.readings[0]?.evidence[0]?.passage.title ?? '';
const namesOf = (option) => [titleOf(option), titleOf(option).replace(/\s*\([^)]*\)$/, ''), option.label].filter(Boolean);

export const hear = (reply) => announce(reply.message || summary(reply.readings));
