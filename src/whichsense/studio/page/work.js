// Entry by an invitation, and what a member has done.
import {button, count, fill, main, make, routeLink, when} from './dom.js';
import {get, post} from './requests.js';

const STATES = {submitted: 'submitted', held: 'begun', left: 'begun', skipped: 'skipped'};

/** For who has no session: the field for an invitation. */
export function showEntry(problem, enter) {
  const field = make('input', {id: 'invitation', required: true, autocomplete: 'off', placeholder: 'ws_…', 'aria-describedby': 'entry-fix'});
  fill(main(), make('section', {class: 'entry-page'}, make('h1', {}, 'You are invited'),
    make('p', {id: 'entry-fix'}, problem.status === 401 ? 'Open the link that you were sent, or put it here.' : `${problem.title} ${problem.fix}`),
    make('form', {class: 'row', onsubmit: (event) => {
      event.preventDefault();
      enter(field.value.trim().split('invitation=').pop());
    }}, make('label', {for: 'invitation', class: 'voice'}, 'Your link'), field, make('button', {class: 'go'}, 'Enter'))));
  return {title: 'Invitation'};
}

/** How long somebody worked, in words. */
export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export async function showWork({project, member, go}) {
  const {items} = await get('work');
  const done = items.filter((one) => one.state === 'submitted');
  const begun = items.find((one) => ['held', 'left'].includes(one.state));
  const said = make('p', {class: 'quiet', role: 'status'});
  const next = button(begun ? 'Go on' : items.length ? 'Next question' : 'Begin', async () => {
    try {
      const {view} = await post('take');
      if (view) go(`/item/${view.item}`);
      else said.textContent = 'Nothing is left for you. Thank you.';
    } catch (problem) {
      said.textContent = `${problem.title} ${problem.fix}`;
    }
  }, {class: 'go begin'});
  const seconds = items.reduce((sum, one) => sum + one.seconds, 0);
  fill(main(), make('h1', {}, project.title),
    make('p', {class: 'about'}, make('strong', {}, project.name), make('span', {class: 'quiet'}, ` · ${member.name}`)),
    member.paused && make('p', {class: 'notes'}, `You are paused: ${member.paused}. What you wrote is kept. Ask an owner of the project.`),
    make('div', {class: 'row begin-row'}, !member.paused && next, said),
    items.length > 0 && make('section', {'aria-labelledby': 'done-title'}, make('h2', {id: 'done-title'}, 'Your work'),
      make('p', {class: 'quiet'}, `${count(done.length, 'question')} submitted, ${duration(seconds)}`),
      make('ul', {class: 'entries'}, items.map((one) => make('li', {}, make('div', {class: 'head'},
        routeLink(`/item/${one.item}`, one.question), make('span', {class: 'figures'}, `${STATES[one.state]}, ${when(one.at * 1000)}`)))))));
  return {title: project.title, pressed: (key) => key === 'Enter' && !member.paused && (next.click(), true)};
}
