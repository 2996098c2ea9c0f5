// Tables of figures, which scroll by themselves where the window is narrow.
import {make} from './dom.js';

/** A table: `columns` are [heading, cell of a row, whether it is a figure]. */
export function table(caption, columns, rows, foot = null) {
  const cells = (row, tag) => columns.map(([heading, cell, isFigure], at) => make(at ? tag : 'th',
    {class: isFigure ? 'figure' : null, scope: at ? null : 'row', 'data-heading': heading}, cell(row)));
  return make('div', {class: columns.some(([heading]) => !heading) ? 'scrolled worded' : 'scrolled', tabindex: '0', role: 'group', 'aria-label': caption}, make('table', {},
    make('caption', {class: 'voice'}, caption),
    make('thead', {}, make('tr', {}, columns.map(([heading, , isFigure]) => make('th', {scope: 'col', class: isFigure ? 'figure' : null}, heading)))),
    make('tbody', {}, rows.map((row) => make('tr', {}, cells(row, 'td')))),
    foot && make('tfoot', {}, make('tr', {}, cells(foot, 'td')))));
}

export const percent = (share) => `${Math.round(100 * share)}%`;
