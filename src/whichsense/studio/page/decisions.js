// Adjudication: the annotations of an item beside each other, and the final one.
import {button, count, fill, main, make, routeLink} from './dom.js';
import {makeForm} from './form.js';
import {drawAbove} from './material.js';
import {get, post} from './requests.js';
import {drawWritten} from './values.js';
import {duration} from './work.js';

const PAUSE = 300; // ms of no typing before a form is checked

/** The list of what can be decided, or one of it. */
export function showDecisions(context, number) {
  return number ? showCase(context, number) : showQueue();
}

async function showQueue() {
  const {items} = await get('adjudication');
  const open = items.filter(isOpen);
  fill(main(), make('h1', {}, 'Adjudicate'), make('p', {class: 'quiet'}, items.length
    ? `${count(open.length, 'question')} to decide, the most different first`
    : 'Nothing is to be decided yet: annotations are shown when all of a question are submitted.'),
    make('ul', {class: 'entries'}, items.map((one) => make('li', {}, make('div', {class: 'head'}, routeLink(`/adjudicate/${one.item}`, one.question),
      make('span', {class: 'figures'}, one.final ? 'decided' : one.own ? 'yours: another decides' : difference(one.difference)))))));
  return {title: 'Adjudicate'};
}

const isOpen = (one) => !one.final && !one.own; // nobody decides about what they wrote
const difference = (share) => (share > 0 ? `${Math.round(100 * share)}% different` : 'all agree');

async function showCase({project, go}, number) {
  const found = await get(`adjudication/${number}`);
  draw(found);

  function draw({body, annotations, final, version, own, difference: share}) {
    const trouble = make('div', {class: 'findings', role: 'alert'});
    const decide = async (decision) => {
      try {
        await post(`adjudication/${number}`, {version, ...decision});
        const {items} = await get('adjudication');
        const next = items.find(isOpen);
        go(next ? `/adjudicate/${next.item}` : '/adjudicate');
      } catch (problem) {
        if (problem.kind === 'incomplete') form.showAll(problem.findings);
        fill(trouble, make('p', {class: 'finding error'}, `${problem.title} ${problem.fix}`));
      }
    };
    let timer = 0;
    const form = makeForm(project.fields, body, final ?? annotations[0].value, () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const {findings, edits} = await post(`items/${number}/check`, {value: form.value});
        form.show(findings, edits);
      }, PAUSE);
    });
    const heading = make('h1', {class: 'asked', tabindex: '-1'}, body.question);
    fill(main(), make('p', {class: 'crumb quiet'}, routeLink('/adjudicate', 'Adjudicate'), ` · ${difference(share)}${final ? ' · decided' : ''}`), heading, drawAbove(body),
      make('div', {class: 'side-by-side'}, annotations.map((one, at) => column(project, body, one, own ? null : () => decide({accept: one.annotator}), at))),
      own ? make('p', {class: 'notes'}, 'You annotated this item yourself. Another adjudicator decides it.') : make('details', {class: 'own-decision', open: final !== null}, make('summary', {}, final ? 'The final annotation' : 'Write the final annotation'), form.element, trouble,
        make('div', {class: 'desk-foot'}, button('Keep as final', () => decide({value: form.value}), {class: 'go'}))), final === null && !own && trouble);
    heading.focus();
  }
  return {title: found.body.question, pressed: (key) => {
    const accept = main().querySelectorAll('.accept')[Number(key) - 1];
    accept?.click();
    return Boolean(accept);
  }};
}

/** An annotator's text, with what they did for it. */
function column({fields}, body, {name, value, seconds, searches, viewed}, accept, at) {
  const pages = [...new Set(viewed.map(({title}) => title))];
  const shown = drawWritten(name, fields, value, body);
  shown.append(make('p', {class: 'quiet effort'}, [duration(seconds), searches.length && `searched ${searches.map((query) => `“${query}”`).join(', ')}`, pages.length && `read ${pages.join(', ')}`].filter(Boolean).join(' · ')),
    value.remark ? make('p', {class: 'notes'}, value.remark) : '', accept ? make('p', {class: 'row'}, button(`Accept ${name}’s`, accept, {class: 'plain accept'}), make('kbd', {'aria-hidden': 'true'}, at + 1)) : '');
  return shown;
}
