// The lease of an item: renewed while its page is open, released when the page is left.
import {post} from './requests.js';

const SIGNS = ['keydown', 'pointermove', 'scroll', 'touchmove'];

/**
 * Hold an item. `onLost(problem)` is told where somebody else has it by now. The function that is given back lets go;
 * `isSaved()` says whether all that was written has arrived: where it has not, the lease runs out by itself.
 */
export function hold(number, seconds, {onLost, isSaved}) {
  let isActive = false;
  const sign = () => { isActive = true; };
  const renew = async () => {
    const active = isActive;
    isActive = false;
    try {
      await post(`items/${number}/renew`, {active});
    } catch (problem) {
      if (problem.kind === 'lease') onLost(problem);
    }
  };
  const timer = setInterval(renew, (seconds * 1000) / 3);
  const leave = () => {
    if (isSaved()) post(`items/${number}/leave`, {}, {keepalive: true}).catch(() => {});
  };
  const listen = (change) => {
    for (const name of SIGNS) document[change](name, sign, {passive: true, capture: true});
    window[change]('pagehide', leave);
  };
  listen('addEventListener');
  return (release = true) => {
    clearInterval(timer);
    listen('removeEventListener');
    if (release) leave();
  };
}
