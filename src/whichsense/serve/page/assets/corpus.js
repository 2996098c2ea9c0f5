// What is indexed: search it, read a document passage by passage, change it.
import {get, learnInfo, post, Problem, shown} from './api.js';
import {Documents} from './documents.js';
import {announce, button, count, fill, main, make, routeLink} from './dom.js';
import {indexChoice, indexOf} from './question.js';
import {documentPath, nameOf, pathOf} from './sources.js';
import {marked} from './text.js';
import {trouble, troubleLine} from './trouble.js';

const PASSAGES = 20;
const HALF = 240; // characters of a passage in the list

export function create(info, go) {
  const field = make('input', {id: 'search', type: 'search', autocomplete: 'off', placeholder: 'Search the passages', maxlength: 2000});
  const about = make('p', {class: 'quiet'});
  const found = make('div', {class: 'results'});
  const documents = new Documents(learn);

  /** What the corpus is now. */
  async function learn() {
    Object.assign(info, await learnInfo());
    describe();
  }

  function describe() {
    const {corpus, passages = 0, method} = indexOf(info);
    const again = () => { go(`/corpus?index=${encodeURIComponent(shown.index)}`); draw(); };
    fill(about, corpus
      ? ['The ', indexChoice(info, again), ` corpus: ${count(passages, 'passage')}, searched by ${METHODS[method]}.`]
      : 'The service cannot be reached at the moment.');
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
      const {hits} = await post('/v1/search', {question: field.value.trim(), k: PASSAGES, ...(shown.index && {index: shown.index})});
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
      make('div', {class: 'head'}, routeLink(documentPath(passage), nameOf(passage)),
        make('span', {class: 'figures'}, passage.id)),
      make('p', {class: 'snippet'}, text));
  }

  /** A document around a passage, as far as it was read; `answer` is a place {start, end} in the passage. */
  async function read(id, answer) {
    showResults(true);
    const list = make('div', {class: 'document'});
    const earlier = button('What comes before', () => extend(true), {class: 'plain'});
    const later = button('What comes after', () => extend(false), {class: 'plain'});
    const known = [];
    const heading = make('h2', {tabindex: '-1'});
    const places = answer ? [{...answer, kind: 'answer'}] : [];

    function draw() {
      fill(list, known.map((one) => make('p', {class: one.id === id ? 'here' : null, title: one.section || null},
        marked(one.text, one.id === id ? places : []))));
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
    try {
      const {passage, before, after} = await get(pathOf(id));
      heading.textContent = passage.title;
      document.title = `${passage.title} · whichsense`;
      known.push(...before, passage, ...after);
      earlier.hidden = !before.length;
      later.hidden = !after.length;
      draw();
      fill(found, make('section', {},
        button('All documents', () => { go('/corpus'); showResults(false); field.focus(); }, {class: 'link'}),
        heading, passage.source !== passage.title && make('p', {class: 'quiet'}, `From ${passage.source}`), earlier, list, later));
      heading.focus({preventScroll: true});
      list.querySelector('.here').scrollIntoView({block: 'center'});
    } catch (problem) {
      fill(found, trouble(problem, () => read(id, answer)));
      if (!(problem instanceof Problem)) throw problem;
    }
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
    const asked = new URLSearchParams(location.search);
    if (asked.get('index')) shown.index = asked.get('index');
    describe();
    documents.load();
    if (asked.get('passage')) {
      const [start, end] = (asked.get('answer') ?? '').split('-').map(Number);
      read(asked.get('passage'), end > start ? {start, end} : null);
      return;
    }
    showResults(false);
    field.focus({preventScroll: true});
  }

  return {draw, pressed: (key) => key === '/' && (field.focus(), true)};
}

const METHODS = {bm25: 'words', dense: 'meaning', hybrid: 'words and meaning'};
