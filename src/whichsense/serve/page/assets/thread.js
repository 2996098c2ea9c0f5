// The page on which one asks: an empty field, then a thread of questions, choices and answers.
import {Problem, get, shown, stream} from './api.js';
import {Chapter, chaptersOf, hear, suggestions, summary, turnsOf} from './chapter.js';
import {announce, button, fill, main, make} from './dom.js';
import {QuestionForm, Settings, exampleList, examplesOf, indexOf} from './question.js';
import {Stages} from './stages.js';
import {remember, threadOf} from './threads.js';
import {trouble, troubleLine} from './trouble.js';

export class ThreadView {
  /** `go(path, replace)` changes the address; `changed()` is called when a thread has. */
  constructor(info, go, changed) {
    Object.assign(this, {info, go, changed});
    this.settings = new Settings(info, () => this.askAnew());
    this.running = null; // of the request that is under way
    this.before = null; // what has to be done before anything else is
    this.undo = null; // what gives back what was written, where it is stopped
    this.talk = null; // the conversation: {id, caseId, turns, found}
    this.chapters = [];
  }

  get caseId() {
    return this.talk.caseId;
  }

  get last() {
    return this.chapters.at(-1);
  }

  /** Whether all of the thread is shown: what is chosen in an earlier part is looked at, and not said. */
  get isAtEnd() {
    return chaptersOf(this.talk.turns).length === this.chapters.length;
  }

  /** The empty page: a field, and examples. */
  begin(question = '', note = '') {
    this.leave();
    this.talk = null;
    this.chapters = [];
    const [example, ...examples] = examplesOf(indexOf(this.info).corpus);
    this.form = new QuestionForm({example, submit: (text) => this.ask(text)});
    this.view = make('div', {class: 'ask empty'}, this.form.form, this.form.length, this.settings.draw(true),
      note && make('p', {class: 'message', role: 'status'}, note),
      examples.length > 0 && exampleList(examples, (text) => this.ask(text)));
    fill(main(), this.view);
    this.form.set(question);
    document.title = 'whichsense';
    this.form.field.focus({preventScroll: true});
    this.changed('', false);
  }

  /** A thread without anything in it yet. */
  draw() {
    this.chapters = [];
    this.list = make('div', {class: 'chapters'});
    this.pending = make('div', {class: 'pending'});
    this.further = make('p', {class: 'further'});
    this.suggested = make('div', {class: 'suggested'});
    this.form = new QuestionForm({
      submit: (text) => this.say(text), placeholder: 'Ask a follow-up, or say what you mean', label: 'Your follow-up', isFollowUp: true,
    });
    this.foot = make('div', {class: 'foot', hidden: true},
      this.further, this.suggested, this.form.form, this.form.length, this.settings.element);
    this.view = make('div', {class: 'ask'}, this.list, this.pending, this.foot);
    fill(main(), this.view);
    this.changed(this.talk?.id ?? '', true);
  }

  /** Ask the question that begins a thread. */
  ask(question) {
    this.leave();
    this.talk = null;
    this.draw();
    this.title(question);
    this.run({
      text: question, tag: 'h1', undo: () => this.begin(question, 'Stopped.'),
      work: (follow) => follow('/v1/conversations', {question, ...this.settings.body}),
    });
  }

  /** Something else was set: what was asked last is asked again, in a thread of its own. */
  askAnew() {
    if (this.talk) return this.ask(this.last.question);
    this.go(`/${this.settings.query(true)}`, true);
    this.begin(this.form.field.value);
  }

  /** Say something in the thread: a reply in words, or another question. */
  say(text) {
    this.run({
      text, tag: 'p', undo: () => { this.form.set(text); this.form.focus(); announce('Stopped.'); },
      work: (follow) => this.reply(follow, {text}),
    });
    this.form.set('');
  }

  /** Options are open: their readings are shown, and what follows is about them. */
  choose(rows) {
    const options = rows.map(({option}) => option.id);
    const labels = rows.map(({option}) => option.label).join(' and ');
    if (this.isAtEnd) this.tellService({options}, labels, rows.at(-1).body);
  }

  chooseAll(chapter) {
    chapter.list.openAll();
    this.tellService({text: 'all of them'}, 'all of them', chapter.after);
  }

  tell(chapter) {
    chapter.teller.disabled = true;
    this.tellService({explain: true}, '', chapter.aside, 'Writing it, with a source for every sentence …')
      .then(() => { chapter.teller.disabled = false; chapter.aside.querySelector('h2')?.focus(); });
  }

  /** Reply without words of one's own; what is under way is said at `place`. */
  async tellService(body, label, place, doing = 'Noting it …') {
    const waiting = make('p', {class: 'doing', role: 'status'}, doing);
    place.append(waiting);
    try {
      await this.inOrder(async (follow) => this.present(await this.reply(follow, body, label)));
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      waiting.after(troubleLine(problem));
      if (!(problem instanceof Problem)) throw problem;
    } finally {
      waiting.remove();
    }
  }

  /** Do one thing after the other: a question that is asked after a choice is about that choice. */
  async inOrder(work, stages = null) {
    const {signal} = this.running ??= new AbortController();
    const before = this.before;
    const options = {signal, onBreak: () => stages?.broken()};
    const follow = (path, body) => stream(path, body, (stage) => stages?.ended(stage), options);
    const mine = (async () => {
      await before;
      signal.throwIfAborted();
      await work(follow, signal);
    })();
    const settled = this.before = mine.catch(() => {});
    try {
      await mine;
    } finally {
      if (this.before === settled) this.running = this.undo = null;
    }
  }

  /** Reply in the conversation. A case from its link has none yet: it is begun by asking again. */
  async reply(follow, body, label = '') {
    const {talk} = this;
    const {threshold} = this.settings;
    let reply = body;
    if (!talk.id) {
      const begun = await follow('/v1/conversations', {question: talk.found.question, ...this.settings.body});
      talk.id = begun.id;
      // Its options may be others than those of the case.
      if (body.options) reply = {text: label};
    }
    return follow(`/v1/conversations/${talk.id}/replies`, {...reply, threshold});
  }

  /** Send what a person wrote: it is shown with the stages of its answer, and stopped by a button or a key. */
  async run({text, tag, work, undo}) {
    const stages = new Stages('', () => this.stop());
    const heading = make(tag, {class: 'asked', tabindex: '-1'}, text);
    fill(this.pending, heading, stages.element);
    this.foot.hidden = true;
    this.undo = () => { stages.stop(); fill(this.pending); this.foot.hidden = !this.talk; undo(); };
    heading.focus({preventScroll: true});
    heading.scrollIntoView({block: 'nearest'});
    announce('Searching');
    try {
      await this.inOrder(async (follow) => {
        const data = await work(follow);
        stages.stop();
        fill(this.pending);
        this.present(data, stages);
      }, stages);
      this.last.heading.focus({preventScroll: true});
      if (tag === 'p') (this.last.after.lastElementChild ?? this.last.heading).scrollIntoView({block: 'start'});
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      stages.stop();
      fill(this.pending, heading, trouble(problem, () => this.run({text, tag, work, undo})));
      this.foot.hidden = !this.talk;
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  /** Stop what is under way: the service is told, and what was written is in the field again. */
  stop() {
    const {undo} = this;
    this.leave();
    undo?.();
  }

  /** Another view, or another thread, takes the place of this one. */
  leave() {
    this.running?.abort();
    this.running = this.undo = null;
  }

  /** What was said is answered: show it, and give it its address. */
  present(data, stages = null) {
    const {turns} = data.conversation;
    const isBegun = !this.talk?.turns;
    this.keep(data);
    this.show(turns.length, stages);
    const turn = turns.at(-1);
    if (isBegun) announce(summary(turn.readings));
    else hear(turn);
    this.go(this.address(turns.length));
  }

  /** Take over what the service says of the conversation. */
  keep({id, case_id: caseId, index = '', conversation: {turns, case: found}}) {
    this.talk = {id, caseId, turns, found};
    shown.index = index;
    remember(this.talk);
  }

  /** Show the thread up to a turn; what is shown already stays as it is. */
  show(upTo, stages = null) {
    const {turns, found} = this.talk;
    const shown = chaptersOf(turns.slice(0, upTo));
    const known = chaptersOf(turns).length;
    shown.forEach(({turn, replies}, i) => {
      if (!this.chapters[i]) {
        this.last?.close();
        const isLast = i === known - 1;
        if (isLast) stages?.finish(found);
        const chapter = new Chapter(turn, {
          thread: this, isFirst: !i, found: isLast ? found : null, stages: isLast ? stages?.element : null,
        });
        if (!isLast) chapter.close();
        this.chapters.push(chapter);
        this.list.append(chapter.element);
      }
      this.chapters[i].follow(replies);
    });
    this.title(this.chapters[0].question);
    fill(this.further, upTo < turns.length && ['This thread goes on from here. ', button('Show all of it', () => {
      this.go(this.address(turns.length));
      this.show(turns.length);
    }, {class: 'link'})]);
    const asked = suggestions(this.chapters);
    fill(this.suggested, asked.length > 0 && [make('span', {class: 'quiet'}, 'Ask the same about '),
      asked.map(({label, text}) => button(label, () => this.say(text), {class: 'plain'}))]);
    this.settings.draw(false);
    this.foot.hidden = false;
    this.form.measure();
    this.changed(this.talk.id, true);
  }

  address(turn) {
    return `/t/${this.talk.id}/${turn}${this.settings.query()}`;
  }

  /** Show a thread from its address; one that is shown already is not read again. */
  async open(id, upTo) {
    const last = () => Math.min(Number(upTo) || this.talk.turns.length, this.talk.turns.length);
    if (this.talk?.id === id && this.talk.turns) {
      this.leave();
      this.draw();
      this.show(last());
      return;
    }
    await this.load(`/v1/conversations/${encodeURIComponent(id)}`, (data) => {
      this.keep(data);
      this.show(last());
    });
  }

  /** Show a case from its link; where this browser asked it in a thread, that. */
  async replay(caseId) {
    const id = threadOf(caseId);
    if (id) {
      this.go(`/t/${id}`, true);
      await this.open(id);
      return;
    }
    await this.load(`/v1/cases/${encodeURIComponent(caseId)}`, (data) => {
      this.talk = {id: '', caseId, turns: turnsOf(data.case), found: data.case};
      shown.index = data.index ?? '';
      this.show(this.talk.turns.length);
    });
  }

  async load(path, show) {
    this.leave();
    this.draw();
    try {
      await this.inOrder(async (follow, signal) => {
        const data = await get(path, {signal});
        if (data.state === 'running') throw new Problem({title: 'It is still being answered.', type: 'loading'});
        show(data);
      });
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      fill(this.pending, trouble(problem, problem.kind === 'not-found' ? null : () => this.load(path, show)));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  title(question) {
    document.title = `${question} · whichsense`;
  }

  pressed(key) {
    if (key === 'Escape') return Boolean(this.running) && (this.stop(), true);
    if (key === '/') return !this.form.form.hidden && (this.form.focus(), true);
    if (!this.last) return false;
    if (/^[1-9]$/.test(key)) return this.last.press(Number(key)), true;
    if (/^[+][1-9]$/.test(key)) return this.last.add(Number(key[1])), true;
    if (key === 'a' && this.last.choices) return this.chooseAll(this.last), true;
    if (key === 'e' && this.last.teller) return this.last.teller.click(), true;
    if (key === 's') return this.last.toggleSources(), true;
    return false;
  }
}
