// Agreement: each measure with its interval and what it says, and the table that it is made from.
import {count, fill, main, make, routeLink} from './dom.js';
import {get} from './requests.js';
import {percent, table} from './tables.js';

const figure = (value) => (value === null ? '–' : value.toFixed(2).replace('-', '−'));

export async function showMeasures() {
  const {measures, rows} = await get('agreement');
  fill(main(), make('h1', {}, 'Agreement'),
    make('ul', {class: 'measures'}, measures.map(drawMeasure)),
    make('section', {}, make('h2', {}, 'Question by question'), table('Agreement of each question', [
      ['Question', (row) => routeLink(`/adjudicate/${row.item}`, row.question)],
      ['Annotations', (row) => row.annotations, true], ['Agreement', (row) => figure(row.agreement), true],
      ['', (row) => row.says],
    ], rows)));
  return {title: 'Agreement'};
}

function drawMeasure({name, value, low, high, units, says}) {
  const interval = low !== null && high !== null;
  return make('li', {class: 'measure'}, make('div', {class: 'measure-head'}, make('h2', {}, name),
    make('p', {class: 'measure-value'}, value === null ? 'Undefined' : figure(value),
      interval && make('span', {class: 'quiet'}, ` ${figure(low)} to ${figure(high)}`))),
    value !== null && interval && drawInterval(value, low, high),
    make('p', {class: 'quiet'}, `${says} Over ${count(units, 'question')}.`));
}

/** The value and its interval on a line from 0 to 1; alphas and kappas may lie below 0. */
function drawInterval(value, low, high) {
  const least = Math.min(0, low);
  const at = (share) => (100 * (share - least)) / (1 - least);
  const space = 'http://www.w3.org/2000/svg';
  const draw = (tag, properties) => {
    const element = document.createElementNS(space, tag);
    for (const [name, own] of Object.entries(properties)) element.setAttribute(name, own);
    return element;
  };
  const picture = draw('svg', {viewBox: '0 0 100 6', preserveAspectRatio: 'none', class: 'interval', role: 'img',
    'aria-label': `Between ${percent(low)} and ${percent(high)}`});
  if (least < 0) picture.append(draw('rect', {x: at(0) - 0.1, y: 1, width: 0.2, height: 4, class: 'span'}));
  picture.append(draw('rect', {x: 0, y: 2.75, width: 100, height: 0.5, class: 'whole'}),
    draw('rect', {x: at(low), y: 2, width: Math.max(at(high) - at(low), 0.5), height: 2, class: 'span'}),
    draw('rect', {x: at(value) - 0.25, y: 0, width: 0.5, height: 6, class: 'point'}));
  return picture;
}
