// The form of a kind, drawn from its fields. What depends on another field's value comes and goes with it.
import {fill, make} from './dom.js';
import {drawField} from './controls.js';
import {makeFindings} from './findings.js';

/** Make the form of an item; `changed(field, value)` is told of every change, `body` is what the item shows. */
export function makeForm(fields, body, value, changed) {
  const element = make('form', {class: 'form', novalidate: true, onsubmit: (event) => event.preventDefault()});
  // What is judged entry by entry stands before what is said of it all.
  const ordered = [...fields.filter((field) => field.each), ...fields.filter((field) => !field.each)];
  const findings = makeFindings(element);
  let current = {};
  let drawn = new Map();

  const drawOne = (field) => drawField(field, field.name, current[field.name], (next) => {
    current = {...current, [field.name]: next};
    showAsked();
    changed(field.name, next);
  }, {body});

  function draw() {
    drawn = new Map(ordered.map((field) => [field, drawOne(field)]));
    fill(element, [...drawn.values()]);
    showAsked();
  }

  function showAsked() {
    for (const [field, drawnField] of drawn) {
      drawnField.hidden = !Object.entries(field.when ?? {}).every(([name, wanted]) => wanted.includes(current[name]));
    }
  }

  /** Put another value in, and the focus back to where it was. */
  function replace(next) {
    current = next;
    const order = () => [...element.querySelectorAll('input, textarea, select, button')];
    const at = order().indexOf(document.activeElement);
    draw();
    if (at >= 0) order()[Math.min(at, order().length - 1)]?.focus();
  }

  /** Put another value into one field; what is typed in the others goes on. */
  function set(name, next) {
    current = {...current, [name]: next};
    const field = ordered.find((one) => one.name === name);
    const fresh = drawOne(field);
    drawn.get(field).replaceWith(fresh);
    drawn.set(field, fresh);
    showAsked();
  }

  current = value;
  draw();
  return {element, replace, set, ...findings, get value() { return current; }};
}
