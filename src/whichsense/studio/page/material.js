// What an item shows: readings, annotations of others, long answers, the draft of a question back.
import {make} from './dom.js';
import {markedRewrite} from './text.js';

const OUTCOMES = {single: 'One answer', several: 'Several answers', nothing: 'Nothing found'};
const LETTERS = 'AB';
const rewriteOf = (reading) => reading.question ?? reading.rewrite ?? '';
const answerOf = (reading) => (reading.answers ?? [reading.answer]).filter(Boolean);

/** How one entry of the item's lists is called, in a menu or before a field; `bare`: without its answer. */
export function nameOfEntry(list, entry, at, bare = false) {
  if (list === 'annotations') return `Annotation ${at + 1}`;
  if (list === 'answers') return `Answer ${LETTERS[at]}`;
  return [`${at + 1}. ${rewriteOf(entry)}`, !bare && answerOf(entry)[0]].filter(Boolean).join(' — ');
}

const names = (answers) => make('p', {class: 'answer-line'}, make('strong', {}, answers[0] ?? ''),
  answers.length > 1 && make('span', {class: 'quiet'}, ` also ${answers.slice(1).join(', ')}`));
const rewritten = (question, rewrite) => make('p', {class: 'rewrite'}, markedRewrite(question, rewrite));

function context({title, text}) {
  return make('details', {class: 'context', open: true}, make('summary', {}, title || 'Context'), make('p', {class: 'evidence'}, text));
}

/** A reading: its rewrite with the added words marked, its answer, where it was found. */
export function drawReading(reading, body) {
  const source = reading.sentence && make('blockquote', {}, make('p', {class: 'evidence'}, sentence(reading)),
    make('p', {class: 'quiet'}, reading.title || reading.source));
  return make('div', {class: 'reading-own'},
    rewriteOf(reading) ? rewritten(body.question, rewriteOf(reading)) : make('p', {class: 'quiet'}, 'Without a rewrite'),
    names(answerOf(reading)), source, reading.context && context(reading.context));
}

/** The sentence with the answer in it told apart; offsets count code points. */
function sentence({sentence: text, start, end}) {
  const points = [...text];
  if (!(end > start)) return text;
  return [points.slice(0, start).join(''), make('strong', {}, points.slice(start, end).join('')), points.slice(end).join('')];
}

export function drawAnnotation(annotation, heading, body) {
  const pairs = (annotation.pairs ?? []).map((pair) => make('li', {}, rewritten(body.question, pair.question), names(pair.answers)));
  return make('section', {class: 'annotation'}, make('h2', {}, heading, make('span', {class: 'quiet'}, ` ${OUTCOMES[annotation.outcome] ?? ''}`)),
    annotation.outcome === 'several' && make('ol', {class: 'numbered'}, pairs),
    annotation.outcome === 'single' && names(annotation.answers ?? []));
}

/** What stands at the head of an entry that judges one of the item's own. */
export function drawEntryHead(list, entry, at, body) {
  if (list === 'answers') return make('div', {class: 'long-answer'}, make('h2', {}, `Answer ${LETTERS[at]}`), make('p', {class: 'story-text'}, entry));
  return make('div', {class: 'entry-head'}, make('span', {class: 'number', 'aria-hidden': 'true'}, at + 1), drawReading(entry, body));
}

const readingsList = (body) => make('ol', {class: 'numbered'}, body.readings.map((reading) => make('li', {}, drawReading(reading, body))));

/** What is read before the form is filled in: annotations beside each other, a question back beside a list. */
export function drawAbove(body) {
  const parts = [];
  if (body.annotations) parts.push(body.annotations.map((one, at) => drawAnnotation(one, `Annotation ${at + 1}`, body)));
  if (body.clarification) {
    parts.push(make('section', {class: 'annotation'}, make('h2', {}, 'You are asked back'), make('p', {class: 'draft'}, body.clarification)),
      make('section', {class: 'annotation'}, make('h2', {}, 'You are shown all'), readingsList({...body, readings: body.readings.map(({context: left, ...shown}) => shown)})));
  }
  return parts.length ? make('div', {class: 'side-by-side'}, parts) : null;
}

/** What stays beside the form while it is filled in. */
export function drawBeside(body, fields) {
  const isJudged = (field) => field.each === 'readings' || field.fields.some(isJudged); // then each is shown where it is judged
  if (!body.readings || body.clarification || fields.some(isJudged)) return null;
  return make('section', {class: 'readings-beside', 'aria-labelledby': 'readings-title'}, make('h2', {id: 'readings-title'}, 'Readings'), readingsList(body));
}

/** The question back that a form spells. */
export function composed({lead = '', options = []}) {
  const texts = options.map((option) => (option.text ?? '').trim()).filter(Boolean);
  if (!lead.trim() || !texts.length) return '';
  const last = texts.pop();
  return `${lead.trim()}: ${texts.length ? `${texts.join(', ')}, or ${last}` : last}?`;
}
