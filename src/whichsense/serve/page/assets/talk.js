// What is talked about, and what is said of it in words.
import {count, make} from './dom.js';
import {conversationOf} from './history.js';
import {passageLink} from './passage.js';
import {nearestSentence} from './text.js';

/** What is talked about: the answer of a conversation, or a case from its link. */
export function talkOf(data, caseId = '') {
  if (!data.conversation) {
    const found = data.case;
    return {
      caseId: data.id, conversationId: conversationOf(caseId || data.id), question: found.question, found,
      clarification: found.clarification, chosen: null, message: '', story: found.long_answer, isPending: false,
    };
  }
  const {turns, case: found} = data.conversation;
  const turn = turns.at(-1);
  return {
    caseId: data.case_id, conversationId: data.id, question: found.question, found,
    clarification: turn.shown === 'clarification' ? turn.clarification : null,
    chosen: null, message: turn.message, story: null, isPending: false,
  };
}

export const leadOf = (clarification) => clarification.question.split(':')[0].replace(/[?\s]+$/, '');
/** What tells a reading from others of the question: its rewrite, else its label, else its source. */
export function toldApart({question: rewrite, label, source}, question) {
  if (rewrite !== question) return rewrite;
  return label || (source && `from “${source}”`);
}

/** What the answer of an ambiguous question depends on: the category of its question back, if there is one. */
export function dependence(clarification) {
  const category = clarification?.category ?? 'one';
  return `This depends on ${['', 'one'].includes(category) ? 'what is meant' : `the ${category}`}.`;
}

export const same = (one, other) => one.answer === other.answer && one.question === other.question;

export function summary(found) {
  if (!found.readings.length) return 'No answer was found.';
  return `${count(found.readings.length, 'reading')}: ${found.readings.map((one) => one.answer).join(', ')}`;
}

export function corpusLine(info) {
  if (!info.corpus) return '';
  return [`Asked of the ${info.corpus} corpus, `, count(info.passages, 'passage')];
}

export function notesOf(found) {
  const notes = [...found.notes];
  if (found.stopped === 'deadline') notes.unshift('Time ran out. This is what was found by then; ask again for more.');
  return notes.length > 0 && make('div', {class: 'notes'}, notes.map((note) => make('p', {}, note)));
}

export function whyNothing(found) {
  if (!found.hits.length) return 'No passage of this corpus has the words of the question. Ask with other words.';
  const percent = Math.round((found.answerable ?? 0) * 100);
  const chance = found.answerable === null ? '' : ` (the chance that they do is ${percent} in 100)`;
  return `${count(found.hits.length, 'passage')} came near, but they probably hold no answer${chance}.`;
}

/** A passage that came near: its sentence that has most of the question's words, and where it stands. */
export function nearestPassage(question, passage) {
  const {link, panel} = passageLink(passage);
  return make('li', {}, make('p', {class: 'evidence'}, nearestSentence(question, passage.text)),
    make('p', {class: 'source'}, link), panel);
}
