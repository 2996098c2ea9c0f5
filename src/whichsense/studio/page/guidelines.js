// The guidelines, in a drawer at the page's side.
import {button, make, present} from './dom.js';
import {render} from './markdown.js';

export function showGuidelines({guidelines}) {
  const text = make('div', {class: 'prose'}, render(guidelines));
  const heading = text.querySelector('h2') ?? make('h2', {}, 'Guidelines');
  if (!heading.isConnected && !text.contains(heading)) text.prepend(heading);
  heading.id = 'guidelines-title';
  heading.tabIndex = -1;
  heading.autofocus = true; // a reader begins at the top
  const drawer = make('dialog', {class: 'drawer', 'aria-labelledby': heading.id});
  drawer.append(text, make('div', {class: 'row'}, button('Close', () => drawer.close(), {class: 'plain'})));
  present(drawer);
}
