// Guidelines: the Markdown that they need, as elements. Nothing of it is ever markup of its own.
import {make} from './dom.js';

const INLINE = /\*\*(.+?)\*\*|\*(.+?)\*|`(.+?)`|\[(.+?)\]\((https?:\/\/[^\s)]+)\)/g;

/** Bold, italic, code and links of the web, within a line. */
function inline(text) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(text.slice(at, match.index));
    const [all, bold, italic, code, label, address] = match;
    if (bold) nodes.push(make('strong', {}, inline(bold)));
    else if (italic) nodes.push(make('em', {}, inline(italic)));
    else if (code) nodes.push(make('code', {}, code));
    else nodes.push(make('a', {href: address, rel: 'noreferrer', target: '_blank'}, label));
    at = match.index + all.length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

const ITEM = /^\s*(?:[-*]|\d+\.)\s+/;
const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

function list(lines) {
  const items = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ''));
    else if (items.length) items[items.length - 1] += ` ${line.trim()}`;
  }
  return make(/^\s*\d/.test(lines[0]) ? 'ol' : 'ul', {}, items.map((item) => make('li', {}, inline(item))));
}

function table(lines) {
  const [head, , ...rows] = lines.map(cells);
  return make('div', {class: 'scrolled', tabindex: '0', role: 'group', 'aria-label': 'Table'}, make('table', {},
    make('thead', {}, make('tr', {}, head.map((cell) => make('th', {scope: 'col'}, inline(cell))))),
    make('tbody', {}, rows.map((row) => make('tr', {}, row.map((cell) => make('td', {}, inline(cell))))))));
}

function block(lines) {
  const heading = /^(#{1,6})\s+(.*)/.exec(lines[0]);
  if (heading) {
    const rest = lines.slice(1);
    const level = heading[1].length === 1 ? 'h2' : 'h3';
    return [make(level, {}, inline(heading[2])), rest.length ? block(rest) : []];
  }
  if (ITEM.test(lines[0])) return list(lines);
  if (lines.length > 1 && /^\s*\|?[\s:|-]+$/.test(lines[1]) && lines[1].includes('-')) return table(lines);
  return make('p', {}, inline(lines.join(' ')));
}

/** The elements of a text in Markdown. */
export function render(text) {
  return text.split(/\n\s*\n/).map((part) => part.split('\n').filter((line) => line.trim()))
    .filter((lines) => lines.length).flatMap(block);
}
