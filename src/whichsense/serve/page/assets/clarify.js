// The question back to the person: options, several of them, all, something else, words of one's own.
import {button, count, freshId, make} from './dom.js';

/**
 * A clarification as an element. Calls `choose(options)`, `all()`, `none()` or `say(text)`.
 * The element has `press(number)`: what the keys 1–9 do.
 */
export function clarificationBlock(clarification, {choose, all, none, say}) {
  const picked = new Set();
  let isSeveral = false;
  const lead = clarification.question.split(':')[0].replace(/[?\s]+$/, '');
  const heading = make('h2', {id: freshId('lead'), tabindex: '-1'}, `${lead}?`);
  const buttons = clarification.options.map((option, i) => optionButton(option, i, () => press(i)));
  const several = button('Several', () => (isSeveral && picked.size ? finish() : setSeveral(!isSeveral)),
    {class: 'plain', 'aria-pressed': 'false'});
  const everything = make('button', {type: 'button', class: 'plain', onclick: all, 'aria-keyshortcuts': 'a'},
    'All of them ', make('kbd', {'aria-hidden': 'true'}, 'a'));
  const element = make('section', {class: 'clarification', 'aria-labelledby': heading.id},
    heading,
    make('ul', {class: 'options'}, buttons.map((one) => make('li', {}, one))),
    make('div', {class: 'row choices'}, everything, several,
      button('Something else', none, {class: 'plain'}), replyForm(say)));

  function press(i) {
    const option = clarification.options[i];
    if (!option) return;
    if (!isSeveral) {
      choose([option]);
      return;
    }
    if (!picked.delete(option)) picked.add(option);
    buttons[i].setAttribute('aria-pressed', String(picked.has(option)));
    several.textContent = picked.size ? `Show ${count(picked.size, 'choice')}` : 'Several';
  }
  function setSeveral(value) {
    isSeveral = value;
    element.classList.toggle('several', value);
    several.setAttribute('aria-pressed', String(value));
    for (const one of buttons) {
      if (value) one.setAttribute('aria-pressed', 'false');
      else one.removeAttribute('aria-pressed');
    }
  }
  function finish() {
    choose(clarification.options.filter((option) => picked.has(option)));
  }
  return {element, heading, press: (number) => press(number - 1), all};
}

function optionButton(option, i, onclick) {
  const hasKey = i < 9;
  return make('button', {type: 'button', class: 'option', onclick, 'aria-keyshortcuts': hasKey ? String(i + 1) : null},
    hasKey ? make('kbd', {'aria-hidden': 'true'}, String(i + 1)) : make('span', {class: 'no-key'}),
    make('span', {class: 'option-text'},
      make('span', {class: 'label'}, option.label),
      option.description && make('span', {class: 'description'}, option.description)));
}

/** The field for a reply in one's own words. */
export function replyForm(say, label = 'Or in your own words') {
  const id = freshId('reply');
  const field = make('input', {id, type: 'text', class: 'reply', maxlength: 2000, autocomplete: 'off', placeholder: label});
  return make('form', {
    class: 'row reply-form',
    onsubmit: (event) => {
      event.preventDefault();
      if (field.value.trim()) say(field.value.trim());
    },
  }, make('label', {for: id, class: 'voice'}, label), field, make('button', {class: 'plain'}, 'Reply'));
}

/** What was chosen, in one line, with a way back. */
export function chosenLine(lead, label, change) {
  return make('p', {class: 'chosen-line'},
    make('span', {class: 'quiet'}, `${lead}? `), make('span', {}, label), ' ',
    button('Change', change, {class: 'link'}));
}
