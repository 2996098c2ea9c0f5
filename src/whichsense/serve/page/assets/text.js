// What differs between two texts, sentences, marks. Offsets of the service count code points, not UTF-16 units.
import {make} from './dom.js';

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’.-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu;
const COMMON = new Set(('a an and are as at be by did do does for from had has have he her his how in is it its of on '
  + 'or she that the their they this to was were what when where which who whom whose why will with').split(' '));

/** The words of a text: {text, start, end, key}; key is what is compared. */
export function words(text) {
  return Array.from(text.matchAll(WORD), (match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
    key: match[0].toLocaleLowerCase('en').replace(/['’]s$/, ''),
  }));
}

/** The words of `after` that stand in no longest common subsequence with `before`. */
export function addedWords(before, after) {
  const old = words(before);
  const fresh = words(after);
  const longest = Array.from({length: old.length + 1}, () => new Uint16Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      longest[i][j] = old[i].key === fresh[j].key
        ? longest[i + 1][j + 1] + 1
        : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const added = [];
  let i = 0;
  for (let j = 0; j < fresh.length; j++) {
    while (i < old.length && old[i].key !== fresh[j].key && longest[i + 1][j] >= longest[i][j + 1]) i++;
    if (i < old.length && old[i].key === fresh[j].key) i++;
    else added.push(fresh[j]);
  }
  return added;
}

/** Words that stand side by side become one stretch: [{start, end}]. */
function stretches(text, chosen) {
  const joined = [];
  for (const word of chosen) {
    const last = joined.at(-1);
    if (last && /^[\s,]*$/.test(text.slice(last.end, word.start))) last.end = word.end;
    else joined.push({start: word.start, end: word.end});
  }
  return joined;
}

/** A rewrite, with what it adds to the question marked. */
export function markedRewrite(question, rewrite) {
  const added = stretches(rewrite, addedWords(question, rewrite));
  return marked(rewrite, added.map((place) => ({...place, kind: 'added'})));
}

/** The keys of the added words that tell something: those to find again in the evidence. */
export function tellingKeys(question, rewrite) {
  const keys = addedWords(question, rewrite).map((word) => word.key);
  return new Set(keys.filter((key) => !COMMON.has(key)));
}

/** Where words with these keys stand in a text. */
export function placesOf(keys, text) {
  const chosen = words(text).filter((word) => keys.has(word.key));
  return stretches(text, chosen).map((place) => ({...place, kind: 'added'}));
}

/** A text as nodes; places {start, end, kind} become marks. Of two that overlap the first listed stays. */
export function marked(text, places) {
  const kept = [];
  for (const place of places) {
    if (kept.every((other) => place.end <= other.start || place.start >= other.end)) kept.push(place);
  }
  kept.sort((one, other) => one.start - other.start);
  const nodes = [];
  let at = 0;
  for (const {start, end, kind} of kept) {
    if (start > at) nodes.push(text.slice(at, start));
    nodes.push(make(kind === 'answer' ? 'strong' : 'mark', {}, text.slice(start, end)));
    at = end;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

/** A code point's offset as one of UTF-16. */
export function unitOffset(text, codePoints) {
  let offset = 0;
  for (let left = codePoints; left > 0 && offset < text.length; left--) {
    offset += text.codePointAt(offset) > 0xffff ? 2 : 1;
  }
  return offset;
}

const SHORT = /(?:^|[\s(])(?:\p{Lu}|Mr|Mrs|Ms|Dr|St|No|vs|Jr|Sr|Prof|Gen|Col|Lt|etc|approx|ca?)\.\s*$/u;

/** The sentences of a text: [{start, end}]. */
export function sentences(text) {
  const cuts = [];
  if (Intl.Segmenter) {
    for (const part of new Intl.Segmenter('en', {granularity: 'sentence'}).segment(text)) cuts.push(part.segment);
  } else {
    cuts.push(...(text.match(/[^.!?]+[.!?]*\s*/g) || [text]));
  }
  const found = [];
  let at = 0;
  let open = false;
  for (const cut of cuts) {
    if (open) found.at(-1).end += cut.length;
    else found.push({start: at, end: at + cut.length});
    at += cut.length;
    open = SHORT.test(cut);
  }
  return found;
}

const SHORTEST = 25; // characters; less is the rest of a sentence that the cut went through

/** The sentence of a text that has most of a question's telling words; of equal ones the first. */
export function nearestSentence(question, text) {
  const keys = new Set(words(question).map((word) => stem(word.key)).filter((key) => !COMMON.has(key)));
  let best = {score: -1, sentence: text};
  for (const {start, end} of sentences(text)) {
    const sentence = text.slice(start, end).trim();
    const shared = new Set(words(sentence).map((word) => stem(word.key)).filter((key) => keys.has(key)));
    const score = sentence.length < SHORTEST ? 0 : shared.size + 0.5;
    if (score > best.score) best = {score, sentence};
  }
  return best.sentence;
}

/** Plural and singular are one here. */
const stem = (key) => (key.length > 4 ? key.replace(/(?:es|s)$/, '') : key);

/** The sentence in which a span of a passage stands, with the span's offsets in it. */
export function sentenceOf(span) {
  const text = span.passage.text;
  const start = unitOffset(text, span.start);
  const end = unitOffset(text, span.end);
  // A span without words is the title's: the first sentence.
  const around = sentences(text).filter((one) => one.end > start && one.start < Math.max(end, start + 1));
  const from = around.length ? around[0].start : 0;
  const to = around.length ? around.at(-1).end : text.length;
  return {text: text.slice(from, to).trimEnd(), start: start - from, end: end - from};
}
