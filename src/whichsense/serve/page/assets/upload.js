// One file on its way into the index: sent in pieces, so that a break costs no more than one of them.
import {get, patch, Problem, stream} from './api.js';

const PIECE = 2 ** 20; // bytes
const ATTEMPTS = 5;

/**
 * Send a file and have it indexed. `tell(phase, share)` is called as it goes on; gives what became of it.
 * The same file, chosen again after a break, goes on where it was: also in another tab, or after a restart.
 */
export async function sendFile(file, tell) {
  const key = keyOf(file);
  let {received} = await get(`/v1/corpus/uploads/${key}`);
  tell(received ? 'resumed' : 'sending', received / file.size);
  for (let failures = 0; received < file.size;) {
    try {
      const piece = file.slice(received, received + PIECE);
      ({received} = await patch(`/v1/corpus/uploads/${key}`, piece, received));
      failures = 0;
    } catch (problem) {
      if (!isBreak(problem) || ++failures === ATTEMPTS) throw problem;
      tell('waiting', received / file.size);
      await pause(500 * 2 ** failures);
      ({received} = await get(`/v1/corpus/uploads/${key}`).catch(() => ({received})));
    }
    tell('sending', received / file.size);
  }
  tell('indexing', 0);
  const path = `/v1/corpus/sources/${encodeURIComponent(file.name)}?upload=${key}`;
  return stream(path, null, ({done}) => tell('indexing', done ?? 0), {method: 'PUT'});
}

const isBreak = (problem) => problem instanceof Problem && (problem.kind === 'offline' || problem.kind === 'gap');
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What an upload is called: the same for the same file, another one as soon as the file was changed. */
export function keyOf({name, size, lastModified}) {
  let hash = 0n; // FNV-1a, 64 bits
  for (const unit of new TextEncoder().encode(name)) {
    hash = ((hash ^ BigInt(unit)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return `${hash.toString(16).padStart(16, '0')}-${size}-${lastModified}`;
}
