// How probable an answer must be to be shown. The address keeps it; without it the service chooses.
import {button, make} from './dom.js';

const BEGINNING = 30; // percent, at which the range stands until it is moved

export class Threshold {
  /** `changed()` is called when another value was chosen. */
  constructor(changed) {
    this.changed = changed;
    const given = Math.round(100 * new URLSearchParams(location.search).get('threshold'));
    this.percent = given >= 1 && given <= 100 ? given : null;
    this.said = make('output', {for: 'threshold'});
    this.range = make('input', {
      id: 'threshold', type: 'range', min: 1, max: 100, value: BEGINNING,
      oninput: () => this.show(Number(this.range.value)),
      onchange: () => this.choose(Number(this.range.value)),
    });
    this.usual = button('Usual', () => this.choose(null), {class: 'link'});
    this.element = make('p', {class: 'threshold quiet'},
      make('label', {for: 'threshold'}, 'Show answers from ', this.said, ' %'), this.range, this.usual);
    this.show(this.percent);
  }

  /** A probability, or null: the service chooses. */
  get value() {
    return this.percent === null ? null : this.percent / 100;
  }

  /** What the address says of it. */
  get query() {
    return this.percent === null ? '' : `?threshold=${this.value}`;
  }

  choose(percent) {
    this.percent = percent;
    this.show(percent);
    this.changed();
  }

  show(percent) {
    this.range.value = percent ?? BEGINNING;
    this.said.textContent = percent ?? '…';
    this.usual.hidden = percent === null;
  }
}
