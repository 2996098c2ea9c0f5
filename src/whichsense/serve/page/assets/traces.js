// What was asked, how long each stage took, what people said of it.
import {get, Problem} from './api.js';
import {button, count, fill, main, make, routeLink, when} from './dom.js';
import {trouble, troubleLine} from './trouble.js';

const ROWS = 50;
const KINDS = [['', 'all'], ['judged', 'judged'], ['wrong', 'found wrong'], ['unanswered', 'without an answer'], ['stopped', 'stopped']];
const ABOUT = {answer: 'the answer', question: 'the reading of the question', source: 'the source'};

export function create(info) {
  const list = make('ol', {class: 'entries'});
  const more = button('Earlier ones', () => load(), {class: 'plain', hidden: true});
  const said = make('div', {});
  const words = make('input', {id: 'containing', type: 'search', autocomplete: 'off', maxlength: 200, placeholder: 'Words of the question'});
  const kind = make('select', {id: 'kind', onchange: () => again()},
    KINDS.map(([value, label]) => make('option', {value}, label)));
  let oldest = null;

  async function load() {
    try {
      const chosen = new URLSearchParams({limit: ROWS, kind: kind.value, containing: words.value.trim()});
      if (oldest !== null) chosen.set('before', oldest);
      const {cases} = await get(`/v1/cases?${chosen}`);
      oldest = cases.at(-1)?.at ?? oldest;
      const longest = Math.max(...cases.map((one) => one.seconds), 0.001);
      list.append(...cases.map((one) => row(one, longest)));
      more.hidden = cases.length < ROWS;
      const isFiltered = kind.value || words.value.trim();
      fill(said, !list.childElementCount && make('p', {}, isFiltered ? 'Nothing like that was asked.' : 'Nothing was asked yet.'));
    } catch (problem) {
      fill(said, trouble(problem, load));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  function again() {
    oldest = null;
    fill(list);
    load();
  }

  function row(one, longest) {
    const details = make('div', {class: 'details', hidden: true});
    const open = button('Details', async () => {
      details.hidden = !details.hidden;
      open.setAttribute('aria-expanded', String(!details.hidden));
      if (!details.hidden && !details.childElementCount) await showDetails(one, details);
    }, {class: 'link', 'aria-expanded': 'false', 'aria-label': `Details of: ${one.question}`});
    return make('li', {},
      make('div', {class: 'head'}, routeLink(`/q/${one.id}`, one.question),
        make('span', {class: 'figures'}, `${one.seconds.toFixed(1)} s`)),
      strip(one, longest),
      make('p', {class: 'quiet'}, [
        when(one.at * 1000), count(one.readings, 'reading'),
        info.systems.length > 1 && one.system,
        one.up && `${one.up} found it right`, one.down && `${one.down} found it wrong`,
        one.stopped && `stopped: ${one.stopped}`,
      ].filter(Boolean).join(' · '), ' · ', open),
      details);
  }

  function draw() {
    document.title = 'Traces · whichsense';
    fill(main(), make('div', {class: 'view'},
      make('h1', {}, 'Traces'),
      make('p', {class: 'quiet'}, info.traces
        ? ['Every answered question, newest first; the line beneath it is its time, stage by stage. ',
          make('code', {}, 'whichsense traces'), ' exports and deletes them.']
        : 'This service keeps no traces; what was asked in the last 15 minutes is listed.'),
      make('form', {class: 'row search-form', role: 'search', onsubmit: (event) => { event.preventDefault(); again(); }},
        make('label', {for: 'containing', class: 'voice'}, 'Words of the question'), words,
        make('label', {for: 'kind', class: 'voice'}, 'Which ones'), kind,
        make('button', {class: 'plain'}, 'Find')),
      said, list, more));
    load();
  }
  return {draw, pressed: (key) => key === '/' && (words.focus(), true)};
}

/** The time of a case as one line: as long as it took, cut where a stage ends. */
function strip({spent, seconds}, longest) {
  const line = make('div', {class: 'strip', 'aria-hidden': 'true'});
  line.style.inlineSize = `${Math.max(1, (100 * seconds) / longest)}%`;
  for (const [stage, time] of Object.entries(spent)) {
    const part = make('span', {title: `${stage}: ${time.toFixed(2)} s`});
    part.style.flexGrow = String(time);
    line.append(part);
  }
  return line;
}

/** How long each stage took, as bars beneath each other; and what was said of the answer. */
async function showDetails({id, spent, up, down}, place) {
  place.append(times(spent));
  if (!up && !down) return;
  try {
    const {feedback} = await get(`/v1/cases/${encodeURIComponent(id)}/feedback`);
    place.append(make('ul', {class: 'verdicts'}, feedback.map(verdict)));
  } catch (problem) {
    place.append(troubleLine(problem));
  }
}

function times(spent) {
  const longest = Math.max(...Object.values(spent), 0.001);
  return make('dl', {class: 'times'}, Object.entries(spent).map(([stage, seconds]) => {
    const bar = make('span', {class: 'bar', 'aria-hidden': 'true'}, make('span', {}));
    bar.firstChild.style.inlineSize = `${(100 * seconds) / longest}%`;
    return make('div', {}, make('dt', {}, stage), make('dd', {}, bar), make('dd', {}, `${seconds.toFixed(2)} s`));
  }));
}

function verdict({verdict: thumb, about, correction, at}) {
  const what = thumb === 'up' ? 'Right' : ['Wrong', ABOUT[about]].filter(Boolean).join(': ');
  return make('li', {},
    make('span', {}, what), make('span', {class: 'quiet'}, ` · ${when(at * 1000)}`),
    correction && make('p', {class: 'correction'}, correction));
}
