// Readings: the rewrite, its answer, how sure, the evidence.
import {count, make} from './dom.js';
import {nameOf, passageLink} from './passage.js';
import {toldApart} from './talk.js';
import {marked, markedRewrite, placesOf, sentenceOf, tellingKeys, unitOffset} from './text.js';

const ALMOST_CERTAIN = 0.9;
const LIKELY = 0.5;

/** How sure, in words. */
export function sureness(reading, isPossible = false) {
  if (isPossible || reading.confidence < LIKELY) return 'possible';
  return reading.confidence >= ALMOST_CERTAIN ? 'almost certain' : 'likely';
}

/** What stands before an only answer that is not probable. A score below 0 is no probability. */
export function perhaps(readings) {
  const [{confidence} = {}, ...others] = readings;
  return !others.length && confidence >= 0 && confidence < LIKELY ? 'Perhaps: ' : '';
}

/** One reading. `number` is its place among the senses; `large` where it is the only answer, after `before`. */
export function readingEntry(question, reading, {number = 0, large = false, isPossible = false, before = ''} = {}) {
  const keys = tellingKeys(question, `${reading.question} ${reading.label}`);
  return make(number ? 'li' : 'div', {class: large ? 'reading large' : 'reading', value: number || null},
    rewriteLine(question, reading),
    make(large ? 'h2' : 'h3', {class: 'answer'}, before && make('span', {class: 'quiet'}, before), reading.answer),
    sureLine(reading, isPossible),
    reading.evidence.length > 0 && evidence(reading, keys));
}

function rewriteLine(question, reading) {
  const told = toldApart(reading, question);
  if (!told) return null;
  if (told === reading.question) return make('p', {class: 'rewrite'}, markedRewrite(question, told));
  return make('p', {class: 'rewrite'}, reading.label ? make('mark', {}, told) : make('span', {class: 'quiet'}, told));
}

function sureLine(reading, isPossible) {
  const percent = Math.round(reading.confidence * 100);
  const bar = make('span', {class: 'bar', 'aria-hidden': 'true'}, make('span', {}));
  bar.firstChild.style.inlineSize = `${percent}%`;
  return make('p', {class: 'sure', title: `${percent} of 100`}, bar, sureness(reading, isPossible),
    make('span', {class: 'voice'}, `, ${percent} of 100`));
}

function evidence(reading, keys) {
  const [first, ...others] = inFullFirst(reading);
  const sentence = sentenceOf(first);
  const answer = {start: sentence.start, end: sentence.end, kind: 'answer'};
  const {link, panel} = linkOf(first, keys, reading.answer);
  const places = [...(isTitle(first) ? [] : [answer]), ...placesOf(keys, sentence.text)];
  return [
    make('blockquote', {class: 'evidence'}, marked(sentence.text, places)),
    make('p', {class: 'source'}, link),
    panel,
    othersLine(first, others, keys, reading.answer),
  ];
}

/** The evidence, that which has the answer word for word before that which has only a part of it. */
export function inFullFirst({answer, evidence: spans}) {
  const isFull = (span) => {
    const {text} = span.passage;
    return text.slice(unitOffset(text, span.start), unitOffset(text, span.end)) === answer;
  };
  return [...spans.filter(isFull), ...spans.filter((span) => !isFull(span))];
}

/** Where else it stands: each passage once. */
function othersLine(first, others, keys, answer) {
  const byPassage = new Map(others.map((span) => [span.passage.id, span]));
  byPassage.delete(first.passage.id);
  if (!byPassage.size) return null;
  const links = Array.from(byPassage.values(), (span) => linkOf(span, keys, answer));
  return make('details', {class: 'also'},
    make('summary', {}, `Also in ${count(links.length, 'other source')}`),
    links.map(({link, panel}) => [make('p', {class: 'source'}, link), panel]));
}

/** A span without words: the answer stands in the title. */
const isTitle = (span) => span.start === span.end;

function linkOf(span, keys, answer) {
  const {passage} = span;
  const name = nameOf(passage);
  if (isTitle(span)) return passageLink(passage, {keys, label: marked(name, [placeInTitle(passage.title, answer)])});
  const place = {start: unitOffset(passage.text, span.start), end: unitOffset(passage.text, span.end)};
  return passageLink(passage, {keys, answer: place, label: name});
}

/** Where an answer stands in a title; all of it where it has the answer in other words. */
function placeInTitle(title, answer) {
  const start = title.toLocaleLowerCase('en').indexOf(answer.toLocaleLowerCase('en'));
  return start < 0
    ? {start: 0, end: title.length, kind: 'answer'}
    : {start, end: start + answer.length, kind: 'answer'};
}

/** Readings as numbered senses. */
export function senses(question, readings, isPossible = false) {
  return make('ol', {class: 'senses'},
    readings.map((reading, i) => readingEntry(question, reading, {number: i + 1, isPossible})));
}

/** What is merely possible, folded under one line. */
export function possibleFold(question, readings) {
  if (!readings.length) return null;
  return make('details', {class: 'fold'},
    make('summary', {}, `${count(readings.length, 'more reading')} merely possible`),
    senses(question, readings, true));
}
