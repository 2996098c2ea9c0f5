// The field in which a question is written: it grows with it, and says when it is too long.
import {make} from './dom.js';

const LONGEST = 2000;

/** A form with the question. `submit(question)` is called with what is written, or with the grey example. */
export class QuestionForm {
  constructor({example = '', submit, describedBy = null}) {
    this.example = example;
    this.submitted = submit;
    this.field = make('textarea', {
      id: 'question', rows: 1, autocomplete: 'off', enterkeyhint: 'search', 'aria-describedby': describedBy,
      placeholder: example || 'Ask a question',
      oninput: () => this.measure(),
      onkeydown: (event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.submit();
        }
      },
    });
    this.length = make('p', {class: 'length', id: 'length', role: 'status'});
    this.form = make('form', {class: 'question', onsubmit: (event) => { event.preventDefault(); this.submit(); }},
      make('label', {for: 'question', class: 'voice'}, 'Your question'),
      this.field, make('button', {class: 'go'}, 'Ask'));
  }

  /** As high as what is written, an empty field as its grey example. Gives whether it can be asked. */
  measure() {
    this.field.style.blockSize = '';
    this.field.style.blockSize = `${this.field.scrollHeight}px`;
    const size = Array.from(this.field.value.trim()).length;
    const over = size > LONGEST;
    this.form.classList.toggle('too-long', over);
    this.length.textContent = over
      ? `${size.toLocaleString('en')} characters. A question may have ${LONGEST.toLocaleString('en')}: say it in fewer words.`
      : '';
    return !over;
  }

  submit() {
    const question = this.field.value.trim() || this.example;
    if (!question) return;
    if (this.measure()) this.submitted(question);
    else this.field.focus();
  }

  set(question) {
    this.field.value = question;
    this.measure();
  }

  focus() {
    this.field.focus();
    this.field.select();
  }
}
