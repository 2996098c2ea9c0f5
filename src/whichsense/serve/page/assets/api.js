// The service: requests, streams that are rejoined, problems.
import {store} from './dom.js';

/** What went wrong, as the service tells it: title, fix, status, kind. */
export class Problem extends Error {
  constructor({title, fix = '', status = 0, type = '', errors = []}, retryAfter = 0) {
    super(title);
    Object.assign(this, {title, fix, status, errors, retryAfter, kind: type.split(':').pop()});
  }
}

const OFFLINE = {
  type: 'urn:whichsense:problem:offline',
  title: 'The service cannot be reached.',
  fix: 'Check that whichsense serve is running and that this device is online, then try again.',
};
const REJOINS = 3;

function headers(more) {
  const key = store.get('key', '');
  return {...(key && {Authorization: `Bearer ${key}`}), ...more};
}

async function send(path, {method = 'GET', body, piece, offset, accept = 'application/json', signal, after} = {}) {
  let response;
  try {
    response = await fetch(path, {
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

export async function get(path) {
  return (await send(path)).json();
}

export async function post(path, body) {
  return (await send(path, {method: 'POST', body})).json();
}

export async function remove(path) {
  return (await send(path, {method: 'DELETE'})).json();
}

/** Send a piece of a file, from an offset on. */
export async function patch(path, piece, offset) {
  return (await send(path, {method: 'PATCH', piece, offset})).json();
}

/**
 * Post, and call `onStage` for every stage as it ends. Gives the data of the last event.
 * A stream that breaks off is rejoined where the header Location says. Without a body it is a case that is read, or a
 * file that is put.
 */
export async function stream(path, body, onStage, {signal, method = body ? 'POST' : 'GET'} = {}) {
  const request = {method, body: body && {...body, stream: true}};
  let response = await send(path, {...request, accept: 'text/event-stream', signal});
  const place = response.headers.get('Location') || path;
  let seen = 0;
  for (let attempt = 0; ; attempt++) {
    try {
      for await (const event of events(response)) {
        if (event.number) seen = event.number;
        if (event.name === 'stage' || event.name === 'progress') onStage(event.data);
        if (event.name === 'problem') throw new Problem(event.data);
        if (event.name === 'done') return event.data;
      }
    } catch (error) {
      if (error instanceof Problem || error.name === 'AbortError') throw error;
    }
    if (attempt === REJOINS) throw new Problem(OFFLINE);
    await new Promise((resolve) => setTimeout(resolve, 300 * (attempt + 1)));
    response = await send(place, {accept: 'text/event-stream', after: seen, signal});
  }
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
