// The service: requests, streams that are rejoined, problems.
import {BASE, store} from './dom.js';

/** What went wrong, as the service tells it: title, fix, status, kind. */
export class Problem extends Error {
  constructor({title, fix = '', status = 0, type = '', errors = []}, retryAfter = 0) {
    super(title);
    Object.assign(this, {title, fix, status, errors, retryAfter, kind: type.split(':').pop()});
  }
}

/** The index of what is shown, '' for the first that is served: what is read of it is read there. */
export const shown = {index: ''};
export const inIndex = (path) => (shown.index ? `${path}?index=${encodeURIComponent(shown.index)}` : path);

const OFFLINE = {type: 'urn:whichsense:problem:offline', title: 'The service cannot be reached.'};
// Pauses before a stream that broke off is joined again; an answer goes on for 15 s without anybody who listens.
const REJOINS = [300, 1000, 2000, 4000];

function headers(more) {
  const key = store.get('key', '');
  return {...(key && {Authorization: `Bearer ${key}`}), ...more};
}

async function send(path, {method = 'GET', body, piece, offset, accept = 'application/json', signal, after} = {}) {
  let response;
  try {
    response = await fetch(path.startsWith(`${BASE}/v1/`) ? path : BASE + path, {
      method,
      signal,
      headers: headers({
        Accept: accept,
        ...(body && {'Content-Type': 'application/json'}),
        ...(piece && {'Content-Type': 'application/octet-stream', 'Upload-Offset': String(offset)}),
        ...(after && {'Last-Event-ID': String(after)}),
      }),
      body: piece ?? (body && JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(OFFLINE);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const wait = Number(response.headers.get('Retry-After')) || 0;
  try {
    return new Problem({status: response.status, ...(await response.json())}, wait);
  } catch {
    const title = `The service answered with ${response.status}.`;
    return new Problem({title, fix: 'Try again in a moment.', status: response.status}, wait);
  }
}

export async function get(path, {signal} = {}) {
  return (await send(path, {signal})).json();
}

/** What the service says of itself and of its indexes; until it can be reached, nothing. */
export async function learnInfo() {
  const nothing = {corpus: '', passages: 0, systems: [], explains: true, traces: true};
  const known = await get('/v1/info').catch(() => nothing);
  const {indexes} = await get('/v1/indexes').catch(() => ({indexes: [{...known, name: '', default: true}]}));
  return {...known, indexes};
}

export async function post(path, body) {
  return (await send(path, {method: 'POST', body})).json();
}

/** Delete what a path names; gives what the service says of it, null where it says nothing. */
export async function remove(path) {
  const response = await send(path, {method: 'DELETE'});
  return response.status === 204 ? null : response.json();
}

/** Send a piece of a file, from an offset on. */
export async function patch(path, piece, offset) {
  return (await send(path, {method: 'PATCH', piece, offset})).json();
}

/**
 * Post, and call `onStage` for every stage as it ends; gives the data of the last event. Without a body it is a case
 * that is read, or a file that is put. A stream that breaks off is rejoined where the header Location says; `onBreak` is
 * told. An answer whose signal is aborted is cancelled at the service, too.
 */
export async function stream(path, body, onStage, {signal, onBreak = () => {}, method = body ? 'POST' : 'GET'} = {}) {
  const request = {method, body: body && {...body, stream: true}, accept: 'text/event-stream', signal};
  let response = await send(path, request);
  const place = response.headers.get('Location') || path;
  const cancel = () => remove(place).catch(() => {});
  if (body) signal?.addEventListener('abort', cancel);
  let seen = 0;
  try {
    for (const pause of [...REJOINS, null]) {
      try {
        if (response) {
          for await (const event of events(response)) {
            if (event.number) seen = event.number;
            if (event.name === 'stage' || event.name === 'progress') onStage(event.data);
            if (event.name === 'problem') throw new Problem(event.data);
            if (event.name === 'done') return event.data;
          }
        }
      } catch (error) {
        if (error instanceof Problem || error.name === 'AbortError') throw error;
      }
      if (pause === null) break;
      onBreak();
      await new Promise((resolve) => setTimeout(resolve, pause));
      response = await send(place, {accept: 'text/event-stream', after: seen, signal}).catch((error) => {
        if (error.kind === 'offline') return null;
        throw error;
      });
    }
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
  throw new Problem(OFFLINE);
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

/** One event; a comment (a heartbeat) is none. */
function parse(block) {
  const fields = {};
  for (const line of block.split(/\r?\n/)) {
    const place = line.indexOf(':');
    if (place > 0) fields[line.slice(0, place)] = line.slice(place + 1).trimStart();
  }
  if (!fields.data) return null;
  return {name: fields.event, number: Number(fields.id) || 0, data: JSON.parse(fields.data)};
}
