// What was asked, how long each stage took, what people said of it.
import {get, Problem} from './api.js';
import {button, count, fill, main, make} from './dom.js';
import {when} from './history.js';
import {trouble, troubleLine} from './trouble.js';

const ROWS = 50;

export function create(info) {
  const list = make('ol', {class: 'entries'});
  const more = button('Earlier ones', () => load(), {class: 'plain', hidden: true});
  const said = make('div', {});
  let oldest = null;

  async function load() {
    try {
      const before = oldest === null ? '' : `&before=${oldest}`;
      const {cases} = await get(`/v1/cases?limit=${ROWS}${before}`);
      oldest = cases.at(-1)?.at ?? oldest;
      list.append(...cases.map(row));
      more.hidden = cases.length < ROWS;
      fill(said, !list.childElementCount && make('p', {}, 'Nothing was asked yet.'));
    } catch (problem) {
      fill(said, trouble(problem, load));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  function row(one) {
    const details = make('div', {hidden: true});
    const times = button('Stages', async () => {
      details.hidden = !details.hidden;
      times.setAttribute('aria-expanded', String(!details.hidden));
      if (!details.hidden && !details.childElementCount) await showStages(one.id, details);
    }, {class: 'link', 'aria-expanded': 'false', 'aria-label': `Stages of: ${one.question}`});
    return make('li', {},
      make('div', {class: 'head'}, make('a', {href: `/q/${one.id}`, 'data-route': true}, one.question),
        make('span', {class: 'figures'}, `${one.seconds.toFixed(1)} s`)),
      make('p', {class: 'quiet'}, [
        when(one.at * 1000), count(one.readings, 'reading'),
        one.up && `${one.up} found it right`, one.down && `${one.down} found it wrong`,
        one.stopped && `stopped: ${one.stopped}`,
      ].filter(Boolean).join(' · '), ' · ', times),
      details);
  }

  function draw() {
    document.title = 'Traces · whichsense';
    fill(main(), make('div', {class: 'view'},
      make('h1', {}, 'Traces'),
      make('p', {class: 'quiet'}, info.traces
        ? 'Every answered question, newest first. whichsense traces exports and deletes them.'
        : 'This service keeps no traces; what was asked in the last 15 minutes is listed.'),
      said, list, more));
    load();
  }
  return {draw};
}

/** How long each stage took, as bars beside each other. */
async function showStages(id, place) {
  try {
    const {case: found} = await get(`/v1/cases/${encodeURIComponent(id)}`);
    if (!found) return;
    const spent = Object.entries(found.spent);
    const longest = Math.max(...spent.map(([, cost]) => cost.seconds), 0.001);
    place.append(make('dl', {class: 'times'}, spent.map(([stage, {seconds}]) => {
      const bar = make('span', {class: 'bar', 'aria-hidden': 'true'}, make('span', {}));
      bar.firstChild.style.inlineSize = `${(100 * seconds) / longest}%`;
      return make('div', {}, make('dt', {}, stage), make('dd', {}, bar), make('dd', {}, `${seconds.toFixed(2)} s`));
    })));
  } catch (problem) {
    place.append(troubleLine(problem));
  }
}
