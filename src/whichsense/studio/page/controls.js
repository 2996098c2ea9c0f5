// Fields of a form, each drawn by its type: a value goes in, and `change(value)` is called for each new one.
import {button, fill, freshId, make} from './dom.js';
import {drawEntryHead, nameOfEntry} from './material.js';
import {markedRewrite} from './text.js';

/** Draw a field. `context` has the item's body; `path` names the field as findings do: "pairs.1.question". */
export function drawField(field, path, value, change, context) {
  return DRAW[field.type](field, path, value, change, context);
}

const help = (field, id) => field.help && make('p', {class: 'help', id: `${id}-help`}, field.help);
const slot = (id) => make('div', {class: 'findings', id: `${id}-findings`});
const described = (field, id) => (field.help ? `${id}-help ${id}-findings` : `${id}-findings`);

function box(field, path, id, ...inside) {
  return make('div', {class: 'field', 'data-where': path}, make('label', {for: id}, field.label), help(field, id), inside, slot(id));
}

function group(field, path, id, properties, ...inside) {
  const {class: kind = '', ...more} = properties;
  return make('fieldset', {class: `field ${kind}`, 'data-where': path, 'aria-describedby': described(field, id), ...more},
    make('legend', {}, field.label), help(field, id), inside, slot(id));
}

/** A text that grows with what is typed. On one line Enter goes on to the next field. */
function writing(id, value, change, properties = {}) {
  const {long, ...more} = properties;
  const field = make('textarea', {id, rows: long ? 8 : 1, class: long ? 'long' : 'short', spellcheck: 'true', autocomplete: 'off', ...more});
  field.value = value ?? '';
  field.addEventListener('input', () => change(long ? field.value : field.value.replace(/\n/g, ' ')));
  if (!long) field.addEventListener('keydown', goOn);
  return field;
}

function goOn(event) {
  if (event.key !== 'Enter' || event.isComposing || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const fields = [...event.target.form.querySelectorAll('textarea, select')].filter((one) => one.offsetParent);
  fields[fields.indexOf(event.target) + 1]?.focus();
}

function drawText(field, path, value, change, context) {
  const id = freshId('field');
  const edit = field.name === 'question' ? make('p', {class: 'edit', 'data-edit': path}) : null;
  const showEdit = (text) => edit && fill(edit, text && text !== context.body.question && markedRewrite(context.body.question, text));
  const input = writing(id, value, (text) => { showEdit(text); change(text); }, {
    long: field.type === 'long text', 'aria-describedby': described(field, id), required: field.required,
  });
  showEdit(value);
  return box(field, path, id, input, edit);
}

/** One of several, as rows that a number chooses. */
function radios(name, choices, value, change, properties = {}) {
  return make('div', {class: 'choices-list', ...properties}, choices.map(([key, label], at) => {
    const input = make('input', {type: 'radio', name, value: String(key), checked: value === key});
    input.addEventListener('change', () => change(key));
    return make('label', {class: 'pick'}, input, make('span', {}, label), make('kbd', {'aria-hidden': 'true'}, at + 1));
  }));
}

function drawChoice(field, path, value, change) {
  const id = freshId('field');
  return group(field, path, id, {class: 'choice', 'data-pick': true}, radios(id, Object.entries(field.choices), value, change));
}

function drawFlag(field, path, value, change) {
  const id = freshId('field');
  const pick = (key, label) => {
    const input = make('input', {type: 'radio', name: id, value: key, checked: value === (key === 'y')});
    input.addEventListener('change', () => change(key === 'y'));
    return make('label', {class: 'pick'}, input, make('span', {}, label));
  };
  return group(field, path, id, {class: 'flag', 'data-flag': true}, make('div', {class: 'yes-no'}, pick('y', 'Yes'), pick('n', 'No')));
}

/** Texts: the first, and other names for it; or one for each entry of the item's list. */
function drawTexts(field, path, value, change, context) {
  const id = freshId('field');
  const each = context.body[field.each];
  const rows = each ? each.map((_, at) => value?.[at] ?? '') : [...(value?.length ? value : [''])];
  const list = make('div', {class: 'texts'});
  const add = button('Add another name', () => { rows.push(''); draw(); list.lastElementChild.querySelector('textarea').focus(); }, {class: 'link', 'data-add-name': true});
  const row = (text, at) => {
    const label = each ? nameOfEntry(field.each, each[at], at, true) : at ? `Also called, ${at}` : field.label;
    const input = writing(freshId('name'), text, (next) => { rows[at] = next; change([...rows]); }, {
      'aria-label': each || at ? label : null, 'aria-describedby': described(field, id), placeholder: at && !each ? 'Also called' : null,
    });
    if (!each && !at) input.id = id;
    const drop = !each && at > 0 && button('×', () => { rows.splice(at, 1); change([...rows]); draw(); add.focus(); }, {class: 'drop', 'aria-label': `Delete the name ${text || at}`});
    return make('div', {class: 'name', 'data-where': `${path}.${at}`}, each && make('span', {class: 'of', 'aria-hidden': 'true'}, label), make('div', {class: 'name-row'}, input, drop), make('div', {class: 'findings'}));
  };
  const draw = () => fill(list, rows.map(row));
  draw();
  if (each) return group(field, path, id, {class: 'spans'}, list);
  return box(field, path, id, list, add);
}

/** Entries of one of the item's lists, by their numbers: boxes to tick. */
function drawNumbers(field, path, value, change, context) {
  const id = freshId('field');
  const chosen = new Set(value ?? []);
  const pick = (entry, at) => {
    const input = make('input', {type: 'checkbox', checked: chosen.has(at)});
    input.addEventListener('change', () => {
      if (input.checked) chosen.add(at); else chosen.delete(at);
      change([...chosen].sort((one, other) => one - other));
    });
    return make('label', {class: 'pick'}, input, make('span', {}, nameOfEntry(field.of, entry, at)));
  };
  return group(field, path, id, {}, make('div', {class: 'choices-list'}, context.body[field.of].map(pick)));
}

/** One entry of the item's lists: rows at the top of a form, a menu within an entry. */
function drawNumber(field, path, value, change, context) {
  const id = freshId('field');
  const named = context.body[field.of].map((entry, at) => [at, nameOfEntry(field.of, entry, at)]);
  if (!context.isEntry) return group(field, path, id, {class: 'choice', 'data-pick': true}, radios(id, named, value, change));
  const menu = make('select', {id, 'aria-describedby': described(field, id)}, make('option', {value: ''}, 'Choose …'),
    named.map(([at, name]) => make('option', {value: at, selected: at === value}, name)));
  menu.addEventListener('change', () => { if (menu.value) change(Number(menu.value)); });
  return box(field, path, id, menu);
}

/** Entries, each with fields of its own. */
function drawList(field, path, value, change, context) {
  const id = freshId('field');
  const each = context.body[field.each];
  const least = field.when ? 2 : 0; // where somebody said that there are several
  const rows = each ? each.map((_, at) => value?.[at] ?? {}) : [...(value ?? [])];
  const list = make('div', {class: each ? `entries-of ${field.each}` : 'entries-own'});
  const entry = (row, at) => {
    const inside = field.fields.map((own) => drawField(own, `${path}.${at}.${own.name}`, row[own.name], (next) => {
      rows[at] = {...rows[at], [own.name]: next};
      change([...rows]);
    }, {...context, isEntry: true}));
    const head = each ? drawEntryHead(field.each, each[at], at, context.body) : make('span', {class: 'number', 'aria-hidden': 'true'}, at + 1);
    const drop = !each && button('Delete', () => { rows.splice(at, 1); change([...rows]); draw(); add.focus(); }, {class: 'link drop-entry', 'aria-label': `Delete ${at + 1}`});
    return make('div', {class: 'entry', role: 'group', 'aria-label': `${field.label}, ${at + 1}`, 'data-where': `${path}.${at}`},
      head, make('div', {class: 'entry-fields'}, inside, make('div', {class: 'findings'})), drop);
  };
  const add = button('Add one', () => {
    rows.push(freshEntry(field, rows, context));
    change([...rows]);
    draw();
    list.lastElementChild.querySelector('textarea, select').focus();
  }, {class: 'plain', 'data-add': true, 'aria-label': `Add one: ${field.label}`});
  const draw = () => fill(list, rows.map(entry));
  if (!each) while (rows.length < least) rows.push(freshEntry(field, rows, context));
  draw();
  return group(field, path, id, {class: 'list'}, list, !each && add);
}

/** A new entry: a rewrite begins as the question, an option with the first reading that has none. */
function freshEntry(field, rows, {body}) {
  const entry = {};
  for (const own of field.fields) {
    if (own.name === 'question') entry.question = body.question;
    else if (own.type === 'texts') entry[own.name] = [''];
    else if (own.type === 'number') {
      const free = body[own.of].findIndex((_, at) => rows.every((row) => row[own.name] !== at));
      if (free >= 0) entry[own.name] = free;
    } else entry[own.name] = '';
  }
  return entry;
}

const DRAW = {
  text: drawText,
  'long text': drawText,
  choice: drawChoice,
  flag: drawFlag,
  texts: drawTexts,
  numbers: drawNumbers,
  number: drawNumber,
  list: drawList,
};
