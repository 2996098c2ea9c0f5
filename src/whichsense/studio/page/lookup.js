// Search beside the form. Every search and every page that is read is part of the annotation.
import {announce, button, count, fill, make} from './dom.js';
import {post} from './requests.js';

const SNIPPET = 220; // characters of a hit that are shown

/** The beginning of a text, whole words of it. */
const snippet = (text) => (text.length > SNIPPET ? `${text.slice(0, SNIPPET).replace(/\s+\S*$/, '')} …` : text);

/** The search of an item; `titles` are pages that others read. */
export function makeLookup(number, {searches, viewed, body}) {
  const field = make('input', {type: 'search', id: 'lookup-query', maxlength: 1000, autocomplete: 'off', placeholder: 'Search the pages'});
  const place = make('div', {class: 'lookup-place', tabindex: '-1'});
  const read = new Map(viewed.map(({id, title}) => [title, id]));
  const readList = make('div', {class: 'lookup-read'});
  let hits = [];

  async function search(query) {
    fill(place, make('p', {class: 'quiet'}, 'Searching …'));
    try {
      ({hits} = await post(`items/${number}/search`, {query}));
      showHits();
      announce(`${count(hits.length, 'passage')} found`);
    } catch (problem) {
      say(problem);
    }
  }

  function showHits() {
    if (!hits.length) return fill(place, make('p', {class: 'quiet'}, 'No passage has these words. Use fewer, or others.'));
    return fill(place, make('ol', {class: 'hits'}, hits.map(({id, title, text}) => make('li', {},
      button(title, () => open(id), {class: 'link hit'}),
      make('p', {class: 'evidence'}, snippet(text))))));
  }

  async function open(id) {
    try {
      const page = await post(`items/${number}/view`, {passage: id});
      read.set(page.title, id);
      showRead();
      const heading = make('h3', {tabindex: '-1'}, page.title);
      const passages = page.passages.map((passage) => make('p', {class: passage.id === id ? 'here' : null}, passage.text));
      fill(place, hits.length > 0 && button('Back to what was found', () => { showHits(); field.focus(); }, {class: 'link'}),
        make('article', {class: 'document'}, heading, passages));
      heading.focus();
      place.querySelector('.here')?.scrollIntoView({block: 'nearest'});
    } catch (problem) {
      say(problem);
    }
  }

  /** A page by its title: the first passage that is found of it. */
  async function openTitled(title) {
    field.value = title;
    await search(title);
    const found = hits.find((hit) => hit.title === title);
    if (found) await open(found.id);
  }

  function showRead() {
    const others = (body.pages ?? []).filter((title) => !read.has(title));
    fill(readList,
      others.length > 0 && make('p', {}, make('span', {class: 'quiet'}, 'Others read '), links(others, openTitled)),
      read.size > 0 && make('p', {}, make('span', {class: 'quiet'}, 'You read '), links([...read.keys()], (title) => open(read.get(title)))));
  }

  const links = (titles, act) => titles.map((title) => [button(title, () => act(title), {class: 'link'}), ' ']);
  const say = (problem) => {
    fill(place, make('p', {class: 'trouble-line', role: 'alert'}, `${problem.title} ${problem.fix}`));
  };

  const element = make('section', {class: 'lookup', 'aria-label': 'Search'},
    make('form', {class: 'row search-form', role: 'search', onsubmit: (event) => {
      event.preventDefault();
      if (field.value.trim()) search(field.value.trim());
    }}, make('label', {for: 'lookup-query', class: 'voice'}, 'Search the pages'), field, make('button', {class: 'plain'}, 'Search')),
    readList, place);
  showRead();
  if (searches.length) field.value = searches.at(-1);
  return {element, focus: () => { field.focus(); field.select(); }};
}
