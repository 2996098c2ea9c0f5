// How far a project is, who did what, and its data as files.
import {BASE, count, fill, main, make} from './dom.js';
import {get} from './requests.js';
import {percent, table} from './tables.js';
import {duration} from './work.js';

// Format → [how it is called, the kinds whose data it holds; none: all].
const FORMATS = {
  ambignq: ['AmbigNQ', ['generate', 'validate']],
  'ambignq-full': ['AmbigNQ, with searches and pages', ['generate', 'validate']],
  cambignq: ['CAmbigNQ', ['clarification']],
  asqa: ['ASQA', ['long-answer']],
  readings: ['Marks of readings', ['readings']],
  jsonl: ['JSON lines, with everything', []],
};

export async function showProgress({project, member}) {
  const {annotations, items, members} = await get('status');
  const all = annotations.done + annotations.held + annotations.free;
  const parts = Object.entries(items).map(([part, number]) => (part === 'work' ? count(number, 'question') : `${number} of ${part}`));
  const fitting = Object.entries(FORMATS).filter(([, [, kinds]]) => !kinds.length || kinds.includes(project.kind));
  fill(main(), make('h1', {}, 'Progress'), make('p', {class: 'about'}, make('strong', {}, project.name), make('span', {class: 'quiet'}, ` · ${parts.join(', ')}`)),
    make('section', {class: 'far'}, make('p', {class: 'large-figure'}, percent(all ? annotations.done / all : 0)),
      make('div', {class: 'far-bar'}, make('progress', {max: all || 1, value: annotations.done, 'aria-label': 'Submitted'}),
        make('p', {class: 'quiet'}, `${annotations.done} of ${count(all, 'annotation')} submitted, ${annotations.held} begun, ${annotations.free} free`))),
    make('section', {}, make('h2', {}, 'Who'), table('Members', [
      ['Name', (row) => row.name], ['Role', (row) => row.role], ['Submitted', (row) => row.submitted, true],
      ['Time', (row) => duration(row.seconds), true],
      ['Each', (row) => (row.submitted ? duration(row.seconds / row.submitted) : '–'), true],
      ['', (row) => (row.paused ? `paused: ${row.paused}` : '')],
    ], members)),
    member.role === 'owner' && make('section', {}, make('h2', {}, 'Data'), make('p', {class: 'quiet'}, 'Each comes with a data statement: who, how many, agreement, time.'),
      make('ul', {class: 'row exports'}, fitting.map(([name, [label]]) => make('li', {}, make('a', {class: 'plain', href: `${BASE}/v1/export/${name}`, download: true}, label))))));
  return {title: 'Progress'};
}
