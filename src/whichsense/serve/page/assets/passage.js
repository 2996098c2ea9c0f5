// A passage in its place: opened where it is named, with its neighbours.
import {get} from './api.js';
import {button, fill, freshId, make} from './dom.js';
import {marked, placesOf} from './text.js';
import {troubleLine} from './trouble.js';

export const pathOf = (id) => `/v1/passages/${id.split('/').map(encodeURIComponent).join('/')}`;

/** "Title · section". */
export function nameOf(passage) {
  return passage.section ? `${passage.title} · ${passage.section}` : passage.title;
}

/** The passage with marks, its neighbours before and after it. */
export function passageBody(passage, places = [], {before = [], after = []} = {}) {
  return make('div', {class: 'passage'},
    before.map((one) => make('p', {class: 'neighbour'}, one.text)),
    make('p', {class: 'here'}, marked(passage.text, places)),
    after.map((one) => make('p', {class: 'neighbour'}, one.text)),
    sourceLink(passage));
}

/** Where the passage is from, if that is an address. */
function sourceLink(passage) {
  if (!/^https?:\/\//.test(passage.source)) return null;
  return make('p', {class: 'origin'},
    make('a', {href: passage.source, rel: 'noopener noreferrer', target: '_blank'}, passage.source));
}

/**
 * A link that opens a passage beneath itself: {link, panel}. `keys` are words to mark, `answer` a place {start, end}.
 */
export function passageLink(passage, {keys = new Set(), answer = null, label = nameOf(passage)} = {}) {
  const id = freshId('passage');
  const panel = make('div', {id, class: 'panel', hidden: true});
  const link = button(label, () => toggle(), {class: 'link source-link', 'aria-expanded': 'false', 'aria-controls': id});
  let loaded = false;
  async function toggle() {
    panel.hidden = !panel.hidden;
    link.setAttribute('aria-expanded', String(!panel.hidden));
    if (!panel.hidden && !loaded) {
      loaded = true;
      await load();
    }
  }
  async function load() {
    const places = [...(answer ? [{...answer, kind: 'answer'}] : []), ...placesOf(keys, passage.text)];
    fill(panel, passageBody(passage, places));
    try {
      const around = await get(pathOf(passage.id));
      fill(panel, passageBody(passage, places, around));
    } catch (problem) {
      loaded = false;
      panel.append(troubleLine(problem));
    }
  }
  return {link, panel};
}
