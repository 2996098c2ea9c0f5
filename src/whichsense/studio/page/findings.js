// What is wrong in a form, shown at the field; and the words that a rewrite adds and leaves out.
import {announce, count, fill, make} from './dom.js';

/** Said of a field only when it has been left, or when all is to be submitted: it is still being filled in before. */
const LATER = new Set(['empty', 'missing', 'too-few', 'short', 'untied', 'no-option', 'form', 'no-question-mark', 'no-source']);

export function makeFindings(form) {
  const touched = new Set();
  let isTried = false;
  let latest = [];
  let edits = [];

  const placeOf = (where) => {
    for (let path = where; path; path = path.replace(/\.?[^.]*$/, '')) {
      const found = form.querySelector(`[data-where="${CSS.escape(path)}"]`);
      if (found) return found;
    }
    return form;
  };
  const wasTouched = (where) => [...touched].some((path) => path === where || path.startsWith(`${where}.`) || where.startsWith(`${path}.`));

  function isDue(finding, place) {
    if (isTried) return true;
    if (!wasTouched(finding.where)) return false;
    return !LATER.has(finding.rule) || !place.contains(document.activeElement);
  }

  function draw() {
    const slots = new Map([...form.querySelectorAll('.findings')].map((slot) => [slot, []]));
    for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
    for (const finding of latest) {
      const place = placeOf(finding.where);
      const slot = [...place.children].find((child) => child.matches('.findings')) ?? place.querySelector('.entry-fields > .findings');
      if (!slot || !isDue(finding, place)) continue;
      slots.get(slot).push(finding);
      if (finding.level === 'error') place.querySelector('textarea, select')?.setAttribute('aria-invalid', 'true');
    }
    for (const [slot, own] of slots) {
      const texts = own.map(({level, reason}) => make('p', {class: `finding ${level}`}, reason));
      if (slot.textContent !== texts.map((text) => text.textContent).join('')) fill(slot, texts);
    }
    drawEdits();
  }

  function drawEdits() {
    edits.forEach((pieces, at) => {
      const line = form.querySelector(`[data-edit="pairs.${at}.question"]`);
      const field = line?.parentElement.querySelector('textarea');
      const typed = pieces.filter((piece) => piece.change !== 'removed').map((piece) => piece.text).join('');
      if (!line || field.value !== typed || pieces.every((piece) => piece.change === 'same')) return;
      fill(line, pieces.map(drawPiece));
    });
  }

  /** Spaces at the ends stay outside of the mark. */
  function drawPiece({text, change}) {
    if (change === 'same' || !text.trim()) return text;
    const [before, after] = [/^\s*/.exec(text)[0], /\s*$/.exec(text)[0]];
    return [before, make(change === 'added' ? 'mark' : 'del', {}, text.trim()), after];
  }

  form.addEventListener('input', (event) => {
    const field = event.target.closest('[data-where]');
    if (field) touched.add(field.dataset.where);
  });
  form.addEventListener('focusout', () => queueMicrotask(draw));

  return {
    show(found, marked = edits) {
      latest = found;
      edits = marked;
      draw();
    },
    /** Show everything that keeps the form from being submitted, and go to the first of it. */
    showAll(found) {
      isTried = true;
      latest = found;
      draw();
      const errors = found.filter((finding) => finding.level === 'error');
      if (!errors.length) return;
      const place = placeOf(errors[0].where);
      (place.querySelector('textarea:not([hidden]), input, select, button') ?? place).focus();
      announce(`${count(errors.length, 'thing')} to mend. ${errors[0].reason}`);
    },
    get errors() { return latest.filter((finding) => finding.level === 'error'); },
  };
}
