// What is indexed: search it, read a document passage by passage, change it.
import {get, post, Problem} from './api.js';
import {Documents} from './documents.js';
import {announce, button, count, fill, main, make} from './dom.js';
import {nameOf, pathOf} from './passage.js';
import {trouble, troubleLine} from './trouble.js';

const PASSAGES = 20;
const HALF = 240; // characters of a passage in the list

export function create(info) {
  const field = make('input', {id: 'search', type: 'search', autocomplete: 'off', placeholder: 'Search the passages', maxlength: 2000});
  const about = make('p', {class: 'quiet'});
  const found = make('div', {class: 'results'});
  const documents = new Documents(learn);

  /** What the corpus is now. */
  async function learn() {
    Object.assign(info, await get('/v1/info').catch(() => ({})));
    describe();
  }

  function describe() {
    about.textContent = info.corpus
      ? `The ${info.corpus} corpus: ${count(info.passages, 'passage')}, searched by ${METHODS[info.method]}.`
      : 'The service cannot be reached at the moment.';
  }

  /** Results take the place of the documents, until one goes back. */
  function showResults(isShown) {
    found.hidden = !isShown;
    documents.element.hidden = isShown;
  }

  async function search() {
    showResults(Boolean(field.value.trim()));
    if (!field.value.trim()) return;
    fill(found, make('p', {class: 'doing'}, 'Searching …'));
    try {
      const {hits} = await post('/v1/search', {question: field.value.trim(), k: PASSAGES});
      announce(`${count(hits.length, 'passage')}`);
      fill(found, button('All documents', () => { showResults(false); field.value = ''; field.focus(); }, {class: 'link'}), hits.length
        ? make('ol', {class: 'entries'}, hits.map(({passage}) => entry(passage)))
        : make('p', {}, 'No passage has these words. Search with others.'));
    } catch (problem) {
      fill(found, trouble(problem, search));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  function entry(passage) {
    const text = passage.text.length > HALF ? `${passage.text.slice(0, HALF).replace(/\s+\S*$/, '')} …` : passage.text;
    return make('li', {},
      make('div', {class: 'head'}, button(nameOf(passage), () => read(passage), {class: 'link'}),
        make('span', {class: 'figures'}, passage.id)),
      make('p', {class: 'snippet'}, text));
  }

  /** A document around a passage, as far as it was read. */
  async function read(passage) {
    const list = make('div', {class: 'document'});
    const earlier = button('What comes before', () => extend(true), {class: 'plain'});
    const later = button('What comes after', () => extend(false), {class: 'plain'});
    const known = [];
    const heading = make('h2', {tabindex: '-1'}, passage.title);
    fill(found, make('section', {}, button('Back to the search', search, {class: 'link'}), heading, earlier, list, later));
    heading.focus();

    function draw() {
      fill(list, known.map((one) => make('p', {class: one.id === passage.id ? 'here' : null, title: one.section || null}, one.text)));
    }
    async function extend(isBefore) {
      const edge = isBefore ? known[0] : known.at(-1);
      try {
        const around = await get(pathOf(edge.id));
        if (isBefore) known.unshift(...around.before);
        else known.push(...around.after);
        (isBefore ? earlier : later).hidden = !(isBefore ? around.before : around.after).length;
        draw();
      } catch (problem) {
        list.append(troubleLine(problem));
      }
    }
    known.push(passage);
    draw();
    await extend(true);
    await extend(false);
  }

  function draw() {
    document.title = 'Corpus · whichsense';
    const view = make('div', {class: 'view corpus-view'},
      make('h1', {}, 'Corpus'), about,
      make('form', {class: 'row search-form', role: 'search', onsubmit: (event) => { event.preventDefault(); search(); }},
        make('label', {for: 'search', class: 'voice'}, 'Search the passages'), field, make('button', {class: 'plain'}, 'Search')),
      found, documents.element);
    fill(main(), view);
    documents.receive(view);
    showResults(false);
    describe();
    documents.load();
    field.focus({preventScroll: true});
  }

  return {draw, pressed: (key) => key === '/' && (field.focus(), true)};
}

const METHODS = {bm25: 'words', dense: 'meaning', hybrid: 'words and meaning'};
