// The whole story: a paragraph, and each sentence's numbers, which open their passages.
import {post, Problem} from './api.js';
import {announce, button, count, fill, freshId, make} from './dom.js';
import {nameOf, passageLink} from './passage.js';
import {troubleLine} from './trouble.js';

/** Where the story is told: a button first. `conversation()` gives the id of the conversation in which it is asked. */
export class StoryArea {
  constructor(talk, explains, conversation) {
    this.talk = talk;
    this.conversation = conversation;
    this.canTell = explains && talk.found.readings.length > 0;
    this.element = make('div', {class: 'story-area'});
    if (talk.story) this.element.append(storyBlock(talk.story).element);
    else if (this.canTell) {
      this.element.append(make('button', {type: 'button', class: 'tell', onclick: () => this.tell(), 'aria-keyshortcuts': 'e'},
        'Tell the whole story ', make('kbd', {'aria-hidden': 'true'}, 'e')));
    }
  }

  /** Ask for the story, and show it. */
  async tell() {
    const {talk} = this;
    if (talk.story || !this.canTell) return;
    fill(this.element, make('p', {class: 'doing', role: 'status'}, 'Writing it, with a source for every sentence …'));
    try {
      const path = `/v1/conversations/${await this.conversation()}/replies`;
      const data = await post(path, {explain: true});
      talk.story = data.conversation.turns.at(-1).long_answer;
      const {element, heading} = storyBlock(talk.story);
      fill(this.element, element);
      heading.focus();
    } catch (problem) {
      fill(this.element, troubleLine(problem), button('Try again', () => this.tell(), {class: 'plain'}));
      if (!(problem instanceof Problem)) throw problem;
    }
  }
}

/** A long answer. A number opens its passage: in the margin on wide screens, beneath the sentence on narrow ones. */
function storyBlock(longAnswer) {
  const numbers = new Map();
  for (const {passages} of longAnswer.sentences) {
    for (const passage of passages) if (!numbers.has(passage.id)) numbers.set(passage.id, numbers.size + 1);
  }
  const heading = make('h2', {tabindex: '-1'}, 'The whole story');
  const paragraph = make('div', {class: 'story-text'},
    longAnswer.sentences.map((citation) => sentence(citation, numbers)));
  announce(`The whole story: ${count(longAnswer.sentences.length, 'sentence')}.`);
  return {element: make('section', {class: 'story'}, heading, paragraph), heading};
}

function sentence({sentence: text, passages}, numbers) {
  const note = make('span', {class: 'note', id: freshId('note'), hidden: true});
  const marks = passages.map((passage) => {
    const number = numbers.get(passage.id);
    const mark = make('button', {
      type: 'button', class: 'cite', 'aria-expanded': 'false', 'aria-controls': note.id,
      'aria-label': `Source ${number}: ${nameOf(passage)}`, onclick: () => open(mark, passage, number),
    }, String(number));
    return mark;
  });
  function open(mark, passage, number) {
    const wasOpen = mark.getAttribute('aria-expanded') === 'true';
    for (const one of marks) one.setAttribute('aria-expanded', 'false');
    note.hidden = wasOpen;
    if (wasOpen) return;
    mark.setAttribute('aria-expanded', 'true');
    const {link, panel} = passageLink(passage, {label: 'With its neighbours'});
    note.replaceChildren(
      make('span', {class: 'note-title'}, `${number}. ${nameOf(passage)}`),
      link, panel, make('span', {class: 'note-text'}, passage.text));
  }
  return make('span', {class: 'sentence'}, text, '\u2009', make('span', {class: 'cites'}, marks), note, ' ');
}
