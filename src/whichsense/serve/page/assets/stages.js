// The line of stages: it fills as each ends, with real counts; after a while it says what takes long.
import {announce, button, count, make} from './dom.js';

// Each part of the line with the stages that belong to it, and what it says when they have ended.
const PARTS = [
  {stages: ['retrieve', 'rerank'], before: 'passages', after: (counts) => count(counts.passages, 'passage')},
  {stages: ['read'], before: 'answers', after: (counts) => count(counts.answers, 'answer')},
  {stages: ['detect', 'disambiguate', 'round trip'], before: 'readings',
    after: (counts) => count(counts.readings + counts.possible, 'reading')},
  {stages: ['verify'], before: 'check',
    after: (counts) => counts.possible && counts.readings ? `${counts.readings} shown` : 'checked'},
];
// What goes on after a stage has ended.
const NEXT = {
  '': 'searching the corpus',
  'retrieve': 'ranking the passages',
  'rerank': 'reading them for answers',
  'read': 'telling the readings apart',
  'detect': 'telling the readings apart',
  'disambiguate': 'checking every reading',
  'round trip': 'checking every reading',
  'verify': 'wording a question back',
  'clarify': 'putting it together',
  'summarize': 'putting it together',
  'broken': 'the connection broke; joining the answer again',
};
const SLOW_SECONDS = 5;

export class Stages {
  /** `name`: of the system whose stages these are, for those who hear them; `stop()`: what the button to stop does. */
  constructor(name = '', stop = null) {
    this.name = name && `${name}: `;
    this.parts = PARTS.map((part) => make('li', {class: 'stage'}, part.before));
    this.doing = make('span', {});
    this.stopper = stop && button('Stop', stop, {class: 'link stop', 'aria-keyshortcuts': 'Escape'});
    this.element = make('div', {class: 'stages'},
      make('ol', {'aria-label': name ? `Stages of ${name}` : 'Stages'}, this.parts),
      make('p', {class: 'doing'}, this.doing, ' ', this.stopper));
    this.last = '';
    this.begun = performance.now();
    this.since = this.begun;
    this.timer = setInterval(() => this.tell(), 500);
    this.tell();
  }

  /** A stage has ended. */
  ended({stage, counts}) {
    this.last = stage;
    this.since = performance.now();
    const place = PARTS.findIndex((part) => part.stages.includes(stage));
    if (place < 0) return this.tell();
    // A part is full when its last stage has ended, or a stage of a later part.
    for (let i = 0; i <= place; i++) {
      const part = PARTS[i];
      this.parts[i].textContent = part.after(counts);
      const isFull = i < place || stage === part.stages.at(-1) || stage === 'disambiguate';
      this.parts[i].classList.toggle('full', isFull);
    }
    announce(this.name + PARTS[place].after(counts));
    this.tell();
  }

  /** The connection broke, and is made anew. */
  broken() {
    this.last = 'broken';
    this.since = performance.now();
    this.tell();
  }

  /** What goes on, in words; once it is slow, for how long. */
  tell() {
    const doing = NEXT[this.last] ?? 'working';
    const total = (performance.now() - this.begun) / 1000;
    const isSlow = total >= SLOW_SECONDS;
    this.element.classList.toggle('slow', isSlow);
    if (!isSlow) {
      this.doing.textContent = `${capital(doing)} …`;
      return;
    }
    const here = Math.floor((performance.now() - this.since) / 1000);
    this.doing.textContent = `Still at work: ${doing} takes long (${here} s so far, ${Math.floor(total)} s in all).`;
  }

  /** All is done: the line is full and says what there is. */
  finish(found) {
    this.stop();
    const counts = {
      passages: found.hits.length,
      answers: found.answers.length,
      readings: found.readings.length,
      possible: found.possible.length,
    };
    this.parts.forEach((part, i) => {
      part.textContent = PARTS[i].after(counts);
      part.classList.add('full');
    });
  }

  /** It ends here, with what there is. */
  stop() {
    clearInterval(this.timer);
    this.element.classList.remove('slow');
    this.doing.textContent = '';
    this.stopper?.remove();
  }
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
