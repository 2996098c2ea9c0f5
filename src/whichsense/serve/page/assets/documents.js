// The documents of the corpus: list them, add some by drag and drop or from a list of files, remove one.
import {get, inIndex, patch, Problem, remove, shown, stream} from './api.js';
import {announce, button, carefulButton, count, fill, make, routeLink} from './dom.js';
import {trouble, troubleLine} from './trouble.js';

const KINDS = document.querySelector('meta[name=formats]').content;

export class Documents {
  /** `changed()` is called when the corpus has changed. */
  constructor(changed) {
    this.changed = changed;
    this.waiting = []; // rows of files that are still to be sent
    this.isSending = false;
    this.list = make('ul', {class: 'entries sources'});
    this.present = make('div', {hidden: true}, make('h3', {class: 'divider'}, 'In the corpus'), this.list);
    this.added = make('ul', {class: 'entries uploads', 'aria-label': 'Files that were chosen'});
    this.adding = make('div', {class: 'adding'});
    this.said = make('div', {});
    this.element = make('section', {class: 'documents', 'aria-labelledby': 'documents-title'},
      make('h2', {id: 'documents-title'}, 'Documents'), this.adding, this.added,
      this.said, this.present);
  }

  /** What there is, and whether it may be changed. */
  async load() {
    try {
      const [corpus, {sources, complete}] = await Promise.all([get(inIndex('/v1/corpus')), get(inIndex('/v1/corpus/sources'))]);
      this.corpus = corpus;
      if (!this.adding.childElementCount) fill(this.adding, corpus.writable ? this.zone() : closed(corpus));
      fill(this.list, sources.map((one) => this.row(one)));
      this.present.hidden = !sources.length;
      fill(this.said, note(sources, complete));
    } catch (problem) {
      fill(this.said, trouble(problem, () => this.load()));
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  /** Where files are dropped; a button does the same. */
  zone() {
    const input = make('input', {type: 'file', multiple: true, accept: KINDS, hidden: true, id: 'files',
      onchange: () => { this.take(input.files); input.value = ''; }});
    return make('div', {class: 'zone'},
      make('p', {}, 'Drop files here, or ', button('choose them', () => input.click(), {class: 'link', id: 'choose-files'}), '.'),
      make('p', {class: 'quiet'},
        `Text, Markdown, HTML, PDF, Word, JSON lines, tables; up to ${megabytes(this.corpus.most_bytes)} each. `
        + 'A file replaces an earlier one of its name.'),
      input);
  }

  /** Make an element take files that are dropped on it. */
  receive(element) {
    const mark = (isOver) => (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      element.classList.toggle('over', isOver && Boolean(this.corpus?.writable));
    };
    element.addEventListener('dragover', mark(true));
    element.addEventListener('dragleave', mark(false));
    element.addEventListener('drop', (event) => {
      mark(false)(event);
      if (!this.corpus?.writable) return;
      const folders = new Set();
      for (const item of event.dataTransfer.items) {
        const entry = item.webkitGetAsEntry?.();
        if (entry?.isDirectory) folders.add(entry.name);
      }
      this.take(event.dataTransfer.files, folders);
    });
  }

  /** Files were chosen: each gets a row, and they are sent one after the other. */
  take(files, folders = new Set()) {
    for (const file of files) {
      const row = new UploadRow(file, () => this.queue(row));
      this.added.prepend(row.element);
      if (folders.has(file.name)) row.refuse('This is a folder.', 'Open it and drop the files that are in it.');
      else if (!file.size) row.refuse('The file is empty.', 'Check that it was saved.');
      else if (file.size > this.corpus.most_bytes) {
        row.refuse(`The file has ${megabytes(file.size)}; at most ${megabytes(this.corpus.most_bytes)} are taken.`,
          'Split it, or add it with whichsense index add.');
      } else this.queue(row);
    }
  }

  async queue(row) {
    this.waiting.push(row);
    if (this.isSending) return;
    this.isSending = true;
    while (this.waiting.length) {
      if (await this.waiting.shift().send()) {
        await this.changed();
        await this.load();
      }
    }
    this.isSending = false;
  }

  /** A source with what is in it; removing it is asked twice. */
  row({source, title, documents, passages}) {
    const what = documents > 1 ? `${count(documents, 'document')}, ${count(passages, 'passage')}` : count(passages, 'passage');
    const line = make('p', {class: 'quiet'}, title !== source && documents === 1 && `${title} · `, what);
    const whole = passages === 1 ? 'its passage' : `its ${count(passages, 'passage')}`;
    const act = carefulButton('Remove', source, `Remove ${source} and ${whole}?`, (place) => this.remove(source, item, place));
    const item = make('li', {},
      make('div', {class: 'head'}, make('span', {}, source), this.corpus.writable && act), line);
    return item;
  }

  async remove(source, item, act) {
    fill(act, make('span', {class: 'quiet', role: 'status'}, 'Removing …'));
    try {
      await remove(inIndex(`/v1/corpus/sources/${source.split('/').map(encodeURIComponent).join('/')}`));
      announce(`${source} is removed.`);
      await this.changed();
      await this.load();
      document.getElementById('choose-files')?.focus();
    } catch (problem) {
      item.append(troubleLine(problem));
      fill(act);
      if (!(problem instanceof Problem)) throw problem;
    }
  }
}

/** One chosen file: how far it is, and what became of it. */
class UploadRow {
  constructor(file, again) {
    this.file = file;
    this.again = again;
    this.bar = make('progress', {max: 1, value: 0, 'aria-label': `Progress of ${file.name}`});
    this.said = make('p', {class: 'quiet', role: 'status'}, 'Waiting for the files before it.');
    this.element = make('li', {},
      make('div', {class: 'head'}, make('span', {}, file.name), make('span', {class: 'figures'}, megabytes(file.size))),
      this.bar, this.said);
  }

  refuse(title, fix) {
    this.bar.remove();
    fill(this.said, troubleLine({title, fix}));
  }

  /** Send it; gives whether the corpus has changed. */
  async send() {
    fill(this.said);
    if (!this.bar.isConnected) this.said.before(this.bar);
    try {
      const result = await sendFile(this.file, (phase, share) => this.tell(phase, share));
      this.bar.remove();
      fill(this.said, resultLine(result), result.added > 0 && [' ', routeLink(shown.index ? `/?index=${encodeURIComponent(shown.index)}` : '/', 'Ask about it')]);
      if (result.left_out) this.said.append(make('span', {class: 'trouble-line'}, ` ${leftOut(result)}`));
      return true;
    } catch (problem) {
      this.bar.remove();
      fill(this.said, troubleLine(problem));
      // Another attempt does not mend a file that cannot be read.
      if (problem.kind !== 'file') this.said.append(button('Go on', this.again, {class: 'plain'}));
      if (!(problem instanceof Problem)) throw problem;
      return false;
    }
  }

  tell(phase, share) {
    this.bar.value = share;
    this.said.textContent = `${PHASES[phase]} ${Math.round(share * 100)} %`;
  }
}

const PHASES = {
  sending: 'Sending:',
  resumed: 'Part of it is there already. Sending the rest:',
  waiting: 'The connection broke. Trying again from',
  indexing: 'Indexing:',
};

function resultLine({added, replaced, duplicates}) {
  if (!added && duplicates) return `Nothing new: the corpus has all of its ${count(duplicates, 'passage')} already.`;
  const before = replaced ? `, in the place of ${replaced.toLocaleString('en')} of the earlier file` : '';
  return `${count(added, 'passage')} added${before}.`;
}

const leftOut = ({left_out: number, why}) => `${count(number, 'record')} left out; ${why[0] ?? ''}`;

/** Why nothing can be added here, and what to do about it. */
const closed = ({fix}) => make('p', {class: 'quiet closed'}, `Documents cannot be added or removed here. ${fix}`);

function note(sources, complete) {
  if (complete && sources.length) return null;
  if (complete) return make('p', {}, 'There is no document yet.');
  const text = sources.length ? `The latest ${sources.length} are listed.` : 'There are too many documents to list.';
  return make('p', {class: 'quiet'}, `${text} Search to find the others.`);
}

/** A size as people say it. */
function megabytes(bytes) {
  if (bytes < 1000) return count(bytes, 'byte');
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1000))} kB`;
  return `${(bytes / 2 ** 20).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

// A file on its way into the index: sent in pieces, so that a break costs no more than one of them.

const PIECE = 2 ** 20; // bytes
const ATTEMPTS = 5;

/**
 * Send a file and have it indexed. `tell(phase, share)` is called as it goes on; gives what became of it.
 * The same file, chosen again after a break, goes on where it was: also in another tab, or after a restart.
 */
async function sendFile(file, tell) {
  const key = keyOf(file);
  const place = inIndex(`/v1/corpus/uploads/${key}`);
  let {received} = await get(place);
  tell(received ? 'resumed' : 'sending', received / file.size);
  for (let failures = 0; received < file.size;) {
    try {
      const piece = file.slice(received, received + PIECE);
      ({received} = await patch(place, piece, received));
      failures = 0;
    } catch (problem) {
      if (!isBreak(problem) || ++failures === ATTEMPTS) throw problem;
      tell('waiting', received / file.size);
      await pause(500 * 2 ** failures);
      ({received} = await get(place).catch(() => ({received})));
    }
    tell('sending', received / file.size);
  }
  tell('indexing', 0);
  const path = inIndex(`/v1/corpus/sources/${encodeURIComponent(file.name)}`);
  const query = `${shown.index ? '&' : '?'}upload=${key}`;
  return stream(path + query, null, ({done}) => tell('indexing', done ?? 0), {method: 'PUT'});
}

const isBreak = (problem) => problem instanceof Problem && (problem.kind === 'offline' || problem.kind === 'gap');
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What an upload is called: the same for the same file, another one as soon as the file was changed. */
function keyOf({name, size, lastModified}) {
  let hash = 0n; // FNV-1a, 64 bits
  for (const unit of new TextEncoder().encode(name)) {
    hash = ((hash ^ BigInt(unit)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return `${hash.toString(16).padStart(16, '0')}-${size}-${lastModified}`;
}
