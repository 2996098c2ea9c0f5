// The whole story: a paragraph beside the readings, and each sentence's numbers, which open their passages.
import {announce, count, freshId, make} from './dom.js';
import {nameOf, sourceCard} from './sources.js';

/** A long answer as a section: {element, heading}. A number opens its passage beneath the sentence. */
export function storyBlock(longAnswer) {
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
  const note = make('div', {class: 'note', id: freshId('note'), hidden: true});
  const marks = passages.map((passage) => {
    const number = numbers.get(passage.id);
    const mark = make('button', {
      type: 'button', class: 'cite', 'aria-expanded': 'false', 'aria-controls': note.id,
      'aria-label': `Source ${number}: ${nameOf(passage)}`, onclick: () => open(mark, passage),
    }, String(number));
    return mark;
  });
  function open(mark, passage) {
    const wasOpen = mark.getAttribute('aria-expanded') === 'true';
    for (const one of marks) one.setAttribute('aria-expanded', 'false');
    note.hidden = wasOpen;
    if (wasOpen) return;
    mark.setAttribute('aria-expanded', 'true');
    note.replaceChildren(sourceCard(passage, {quote: [passage.text]}));
  }
  return make('span', {class: 'sentence'}, text, '\u2009', make('span', {class: 'cites'}, marks), note, ' ');
}
