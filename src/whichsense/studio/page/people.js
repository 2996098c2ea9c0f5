// Who takes part: invitations, pauses, ends.
import {button, carefulButton, fill, main, make} from './dom.js';
import {get, post, remove} from './requests.js';

const ROLES = ['annotator', 'adjudicator', 'owner'];

export async function showPeople({member: own}) {
  const name = make('input', {id: 'invited-name', required: true, maxlength: 100, autocomplete: 'off'});
  const role = make('select', {id: 'invited-role'}, ROLES.map((one) => make('option', {}, one)));
  const made = make('div', {class: 'made', role: 'status'});
  const list = make('ul', {class: 'entries'});
  const failed = (problem) => fill(made, make('p', {class: 'trouble-line'}, `${problem.title} ${problem.fix}`));

  async function act(change) {
    try {
      await change();
      await draw();
    } catch (problem) {
      failed(problem);
    }
  }

  async function invite(event) {
    event.preventDefault();
    await act(async () => {
      const {link} = await post('members', {name: name.value.trim(), role: role.value});
      const field = make('input', {id: 'made-link', readonly: true, value: link, onfocus: () => field.select()});
      const copy = button('Copy', async () => { await navigator.clipboard.writeText(link); copy.textContent = 'Copied'; }, {class: 'plain'});
      fill(made, make('label', {for: 'made-link'}, `The link for ${name.value.trim()}. It is shown once: send it now.`), make('div', {class: 'row link-row'}, field, copy));
      name.value = '';
    });
  }

  async function draw() {
    const {members} = await get('members');
    fill(list, members.map((one) => make('li', {}, make('div', {class: 'head'}, make('span', {}, one.name, one.id === own.id && ' (you)'),
      make('span', {class: 'figures'}, one.role)),
    make('div', {class: 'row quiet'}, one.paused && `Paused: ${one.paused}`, one.id !== own.id && [
      one.paused ? button('Resume', () => act(() => post(`members/${one.id}/resume`)), {class: 'link', 'aria-label': `Resume ${one.name}`})
        : button('Pause', () => act(() => post(`members/${one.id}/pause`, {reason: 'by an owner'})), {class: 'link', 'aria-label': `Pause ${one.name}`}),
      carefulButton('Remove', one.name, 'The link ends; what was written is kept.', () => act(() => remove(`members/${one.id}`)))]))));
  }

  await draw();
  fill(main(), make('h1', {}, 'People'), make('form', {class: 'invite', onsubmit: invite},
    make('div', {}, make('label', {for: 'invited-name'}, 'Name'), name), make('div', {}, make('label', {for: 'invited-role'}, 'Role'), role), make('button', {class: 'go'}, 'Invite')),
  made, list);
  return {title: 'People'};
}
