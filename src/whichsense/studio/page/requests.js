// The studio's routes: requests with the session's token, and what goes wrong.
import {BASE} from './dom.js';

/** What went wrong, as the studio tells it: title, fix, status, kind, and more where there is more. */
export class Problem extends Error {
  constructor(told) {
    super(told.title);
    Object.assign(this, {fix: '', status: 0, ...told, kind: (told.type ?? '').split(':').pop()});
  }

  /** Whether the same request may be answered a little later: there is no connection, or no database. */
  get isPassing() { return this.kind === 'offline' || this.status === 503; }
}

const OFFLINE = {
  type: 'urn:whichsense:problem:offline',
  title: 'The studio cannot be reached.',
  fix: 'Check the connection.',
};
let token = '';

async function send(method, path, body, keepalive) {
  const headers = {Accept: 'application/json', 'X-CSRF-Token': token};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(`${BASE}/v1/${path}`, {method, keepalive, headers, body: body && JSON.stringify(body)});
  } catch {
    throw new Problem(OFFLINE);
  }
}

async function call(method, path, body, {keepalive = false} = {}) {
  let response = await send(method, path, body, keepalive);
  let problem = response.ok ? null : await problemOf(response);
  if (problem?.kind === 'csrf') { // the invitation was opened once more in another tab
    token = (await call('GET', 'session')).csrf;
    response = await send(method, path, body, keepalive);
    problem = response.ok ? null : await problemOf(response);
  }
  if (problem) throw problem;
  return response.status === 204 ? null : response.json();
}

async function problemOf(response) {
  const silent = {title: `The studio answered with ${response.status}.`, fix: 'Try again in a moment.'};
  const told = await response.json().catch(() => silent);
  return new Problem({...told, status: response.status});
}

export const get = (path) => call('GET', path);
export const post = (path, body = {}, options = {}) => call('POST', path, body, options);
export const remove = (path) => call('DELETE', path);

/** Begin a session with an invitation, or go on with the one that this browser has. */
export async function enter(invitation) {
  const session = await (invitation ? post('session', {invitation}) : get('session'));
  token = session.csrf;
  return session.member;
}
