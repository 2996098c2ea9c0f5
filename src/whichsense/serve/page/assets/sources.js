// Sources: a card with the sentence that holds the answer, which opens its passage in place, between its neighbours.
import {get, inIndex, shown} from './api.js';
import {append, button, count, fill, freshId, make, routeLink} from './dom.js';
import {marked, nearestSentence, placesOf, sentenceOf, unitOffset} from './text.js';
import {troubleLine} from './trouble.js';

export const pathOf = (id) => inIndex(`/v1/passages/${id.split('/').map(encodeURIComponent).join('/')}`);

/** "Title · section". */
export function nameOf(passage) {
  return passage.section ? `${passage.title} · ${passage.section}` : passage.title;
}

/** Where a passage is read in its document; `answer` is a place {start, end} in it, to be marked there. */
export function documentPath(passage, answer) {
  const query = new URLSearchParams({...(shown.index && {index: shown.index}), passage: passage.id});
  if (answer) query.set('answer', `${answer.start}-${answer.end}`);
  return `/corpus?${query}`;
}

/** The card of a span of evidence. `keys` are words to mark, `answer` is what the span should say. */
export function spanCard(span, keys, answer) {
  const {passage} = span;
  const sentence = sentenceOf(span);
  const isTitle = span.start === span.end; // the answer is in the title
  const places = isTitle ? [] : [{start: sentence.start, end: sentence.end, kind: 'answer'}];
  return sourceCard(passage, {
    keys,
    answer: isTitle ? null : {start: unitOffset(passage.text, span.start), end: unitOffset(passage.text, span.end)},
    name: isTitle ? marked(nameOf(passage), [placeInTitle(passage.title, answer)]) : nameOf(passage),
    quote: marked(sentence.text, [...places, ...placesOf(keys, sentence.text)]),
  });
}

/** The card of a passage that came near: the sentence with most of the question's words. */
export const nearCard = (question, passage) => sourceCard(passage, {quote: [nearestSentence(question, passage.text)]});

/** The cards of a reading: one, and the others folded, each passage once. */
export function cards({answer, evidence}, keys) {
  if (!evidence.length) return null;
  const [first, ...others] = inFullFirst({answer, evidence});
  const byPassage = new Map(others.map((span) => [span.passage.id, span]));
  byPassage.delete(first.passage.id);
  const more = byPassage.size > 0 && make('details', {class: 'also'},
    make('summary', {}, `Also in ${count(byPassage.size, 'other source')}`),
    Array.from(byPassage.values(), (span) => spanCard(span, keys, answer)));
  return [spanCard(first, keys, answer), more];
}

/** The evidence, that which has the answer word for word before that which has only a part of it. */
export function inFullFirst({answer, evidence: spans}) {
  const isFull = (span) => {
    const {text} = span.passage;
    return text.slice(unitOffset(text, span.start), unitOffset(text, span.end)) === answer;
  };
  return [...spans.filter(isFull), ...spans.filter((span) => !isFull(span))];
}

/** Where an answer stands in a title; all of it where it has the answer in other words. */
function placeInTitle(title, answer) {
  const start = title.toLocaleLowerCase('en').indexOf(answer.toLocaleLowerCase('en'));
  return start < 0
    ? {start: 0, end: title.length, kind: 'answer'}
    : {start, end: start + answer.length, kind: 'answer'};
}

/** A card: the title, a sentence; clicked, the passage between its neighbours, and the way to its document. */
export function sourceCard(passage, {keys = new Set(), answer = null, name = nameOf(passage), quote}) {
  const id = freshId('passage');
  const panel = make('div', {id, class: 'panel', hidden: true});
  const sentence = make('blockquote', {class: 'evidence'}, quote);
  const title = button(name, () => toggle(), {class: 'source-link', 'aria-expanded': 'false', 'aria-controls': id});
  const card = make('div', {
    class: 'source-card',
    onclick: (event) => {
      if (!event.target.closest('a, button') && panel.hidden && !String(getSelection())) toggle();
    },
  }, make('p', {class: 'source'}, title), sentence, panel);
  let isLoaded = false;
  async function toggle() {
    panel.hidden = !panel.hidden;
    sentence.hidden = !panel.hidden;
    title.setAttribute('aria-expanded', String(!panel.hidden));
    if (panel.hidden || isLoaded) return;
    isLoaded = true;
    const places = [...(answer ? [{...answer, kind: 'answer'}] : []), ...placesOf(keys, passage.text)];
    fill(panel, passageBody(passage, places), wayToDocument(passage, answer));
    try {
      fill(panel, passageBody(passage, places, await get(pathOf(passage.id))), wayToDocument(passage, answer));
    } catch (problem) {
      isLoaded = false;
      panel.append(troubleLine(problem));
    }
  }
  return card;
}

/** The passage with marks, its neighbours before and after it. */
function passageBody(passage, places, {before = [], after = []} = {}) {
  return make('div', {class: 'passage'},
    before.map((one) => make('p', {class: 'neighbour'}, one.text)),
    make('p', {class: 'here'}, marked(passage.text, places)),
    after.map((one) => make('p', {class: 'neighbour'}, one.text)));
}

/** The document at the place of the passage; and where it is from, if that is an address. */
function wayToDocument(passage, answer) {
  const line = make('p', {class: 'origin'}, routeLink(documentPath(passage, answer), 'Read on in the document'));
  if (/^https?:\/\//.test(passage.source)) {
    append(line, [' · ', make('a', {href: passage.source, rel: 'noopener noreferrer', target: '_blank'}, passage.source)]);
  }
  return line;
}
