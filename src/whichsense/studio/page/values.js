// A value that was written, to be read: an annotation, or each field with what it says.
import {make} from './dom.js';
import {drawAnnotation, drawReading} from './material.js';

/** A whole value under a heading. */
export function drawWritten(heading, fields, value, body) {
  if (value.outcome) return drawAnnotation(value, heading, body);
  return make('section', {class: 'annotation'}, make('h2', {}, heading), drawValue(fields, value, body));
}

/** A value by its fields. */
function drawValue(fields, value, body) {
  return make('dl', {class: 'said'}, fields.filter((field) => field.name in value && field.name !== 'remark').map((field) => [
    make('dt', {}, field.label), make('dd', {}, drawOwn(field, value[field.name], body))]));
}

function drawOwn(field, own, body) {
  if (field.choices) return field.choices[own] ?? own;
  if (field.type === 'flag') return own ? 'Yes' : 'No';
  if (field.type === 'numbers') return own.map((at) => at + 1).join(', ') || '–';
  if (field.type === 'number') return `${own + 1}`;
  if (field.type === 'list' && field.each === 'readings') {
    return make('ol', {class: 'numbered'}, own.map((row, at) => make('li', {}, drawReading(body.readings[at], body),
      make('p', {class: 'quiet'}, field.fields.map(({name, label}) => `${label}: ${row[name] ? 'yes' : 'no'}`).join(', ')))));
  }
  if (field.type === 'list') return make('ol', {class: 'numbered'}, own.map((row) => make('li', {}, field.fields.map(({name}) => make('span', {class: `of-${name}`}, `${typeof row[name] === 'number' ? `reading ${row[name] + 1}` : told(row[name])} `)))));
  return make('span', {class: 'told-text'}, told(own));
}

/** A value as lines. */
export function told(value, indent = '') {
  if (value === null || typeof value !== 'object') return String(value ?? '');
  return Object.entries(value).map(([name, own]) => {
    const label = Array.isArray(value) ? `${Number(name) + 1}.` : `${name}:`;
    const nested = own !== null && typeof own === 'object';
    return `${indent}${label} ${nested ? `\n${told(own, `${indent}  `)}` : own}`;
  }).join('\n');
}
