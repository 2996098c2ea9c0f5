// Copy, share, say that something is wrong.
import {post} from './api.js';
import {announce, button, make} from './dom.js';
import {perhaps, sureness, toldApart} from './readings.js';
import {inFullFirst} from './sources.js';
import {troubleLine} from './trouble.js';

/** What can be done with `{question, found, story, caseId}`; `isKept`: the service keeps cases for good. */
export function actionBar(shown, isKept) {
  const said = make('span', {class: 'said quiet', role: 'status'});
  const tell = (text) => { said.textContent = text; };
  const copied = (make_, name) => button(name, async () => {
    await copy(make_(shown));
    tell(`Copied as ${name}.`);
  }, {class: 'link'});
  const right = button('This is right', async () => {
    try {
      await post(`/v1/cases/${shown.caseId}/feedback`, {verdict: 'up'});
      right.disabled = true;
      tell('Thank you. It is kept with this answer.');
    } catch (problem) {
      said.replaceChildren(troubleLine(problem));
    }
  }, {class: 'link'});
  const form = feedbackForm(shown.caseId);
  const wrong = button('This is wrong', () => {
    form.hidden = !form.hidden;
    wrong.setAttribute('aria-expanded', String(!form.hidden));
  }, {class: 'link', 'aria-expanded': 'false'});
  return make('section', {class: 'actions', 'aria-label': 'With this answer'},
    make('p', {},
      make('span', {class: 'group'}, button('Share', async () => {
        await copy(location.href);
        tell(isKept ? 'The link is copied.' : 'The link is copied. It lasts 15 minutes: this service keeps no traces.');
      }, {class: 'link'})),
      make('span', {class: 'group'}, 'Copy as ', copied(asText, 'text'), ' ', copied(asMarkdown, 'Markdown'), ' ',
        copied(asJson, 'JSON')),
      make('span', {class: 'group'}, right, ' ', wrong), said),
    form);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Only secure pages have a clipboard of their own.
    const field = make('textarea', {class: 'voice', readonly: true}, text);
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
}

const sourceOf = (reading) => inFullFirst(reading)[0]?.passage.title ?? reading.source;
const storyOf = (story) => story.sentences.map((one) => one.sentence).join(' ');

function asText({question, found, story}) {
  const lines = [question, ''];
  for (const reading of found.readings) {
    const how = `${sureness(reading)}; ${sourceOf(reading)}`;
    lines.push(toldApart(reading, question) || question, `  ${perhaps(reading)}${reading.answer} (${how})`);
  }
  if (!found.readings.length) lines.push('No answer was found.');
  if (story) lines.push('', storyOf(story));
  return lines.join('\n');
}

function asMarkdown({question, found, story}) {
  const lines = [`## ${escaped(question)}`, ''];
  found.readings.forEach((reading, i) => {
    const how = `*${sureness(reading)}*, ${escaped(sourceOf(reading))}`;
    const told = escaped(toldApart(reading, question) || question);
    lines.push(`${i + 1}. ${told} ${perhaps(reading)}**${escaped(reading.answer)}** (${how})`);
  });
  if (!found.readings.length) lines.push('No answer was found.');
  if (story) lines.push('', escaped(storyOf(story)));
  return [...lines, '', location.href].join('\n');
}

const escaped = (text) => text.replace(/[\\`*_[\]<>#|]/g, '\\$&');
const asJson = ({found}) => JSON.stringify(found, null, 2);

/** "This is wrong": which of answer, question, source; and what would be right. */
function feedbackForm(caseId) {
  const choices = [
    ['answer', 'the answer'], ['question', 'the reading of the question'], ['source', 'the source'],
  ].map(([value, label]) => make('label', {}, make('input', {type: 'radio', name: 'about', value, required: true}), ` ${label}`));
  const right = make('textarea', {id: 'correction', rows: 2, maxlength: 4000});
  const form = make('form', {class: 'feedback', hidden: true},
    make('fieldset', {}, make('legend', {}, 'What is wrong?'), choices),
    make('label', {for: 'correction'}, 'What would be right? ', make('span', {class: 'quiet'}, '(if you know)')), right,
    make('button', {class: 'plain'}, 'Send'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const about = new FormData(form).get('about');
    try {
      await post(`/v1/cases/${caseId}/feedback`, {verdict: 'down', about, correction: right.value.trim()});
      form.replaceChildren(make('p', {}, 'Thank you. It is kept with this answer.'));
      announce('Thank you. It is kept with this answer.');
    } catch (problem) {
      form.append(troubleLine(problem));
    }
  });
  return form;
}
