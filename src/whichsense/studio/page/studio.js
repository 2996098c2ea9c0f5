// The studio's pages: who asks, which page the address names, what keys do.
import {BASE, button, fill, listenToHeader, main, make, routeLink} from './dom.js';
import {showGuidelines} from './guidelines.js';
import {showItem} from './item.js';
import {Problem, enter, get} from './requests.js';
import {listen, showKeys} from './shortcuts.js';
import {showEntry, showWork} from './work.js';

const RETRY = 5000; // ms until a page that could not be shown is asked for again
const context = {member: null, project: null, go};
let view = null;

// Address → page; the owner's are fetched when they are opened.
const PAGES = [
  [/^\/$/, showWork],
  [/^\/item\/(\d+)$/, (own, number) => showItem(own, Number(number))],
  [/^\/progress$/, async (own) => (await import('./progress.js')).showProgress(own)],
  [/^\/adjudicate(?:\/(\d+))?$/, async (own, number) => (await import('./decisions.js')).showDecisions(own, number && Number(number))],
  [/^\/agreement$/, async (own) => (await import('./measures.js')).showMeasures(own)],
  [/^\/pay$/, async (own) => (await import('./payments.js')).showPayments(own)],
  [/^\/members$/, async (own) => (await import('./people.js')).showPeople(own)],
];
const LINKS = [
  ['/', 'Work', 'annotator'],
  ['/progress', 'Progress', 'adjudicator'],
  ['/adjudicate', 'Adjudicate', 'adjudicator'],
  ['/agreement', 'Agreement', 'adjudicator'],
  ['/members', 'People', 'owner'],
  ['/pay', 'Pay', 'owner'],
];
const ROLES = ['annotator', 'adjudicator', 'owner'];

function go(path) {
  history.pushState(null, '', BASE + path);
  route();
}

async function route() {
  const path = location.pathname.slice(BASE.length);
  document.body.classList.remove('menu-open');
  view?.leave?.();
  view = null;
  const found = PAGES.find(([address]) => address.test(path));
  drawLinks(path);
  try {
    if (!found) throw new Problem({title: 'There is no such page.', fix: 'Go to your work.'});
    view = await found[1](context, ...address(found[0], path));
    document.title = `${view.title} · whichsense studio`;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 401) view = showEntry(problem, begin);
    else showTrouble(problem, route);
  }
}

const address = (pattern, path) => pattern.exec(path).slice(1);

/** Say what went wrong; what may pass is tried again by itself, until another page is opened. */
function showTrouble(problem, again) {
  const heading = make('h1', {tabindex: '-1'}, problem.title);
  fill(main(), make('section', {class: 'trouble'}, heading, make('p', {}, problem.fix), problem.isPassing ? button('Try again', again) : routeLink('/', 'Your work')));
  heading.focus();
  if (!problem.isPassing) return;
  const retry = setTimeout(again, RETRY);
  view = {title: problem.title, leave: () => clearTimeout(retry)};
}

function drawLinks(path) {
  const rank = ROLES.indexOf(context.member?.role);
  const nav = document.getElementById('pages');
  for (const link of nav.querySelectorAll('a')) link.remove();
  const links = rank > 0 ? LINKS.filter(([, , role]) => ROLES.indexOf(role) <= rank) : LINKS.slice(0, rank + 1);
  nav.prepend(...links.map(([to, label]) => {
    const isHere = to === '/' ? path === '/' || path.startsWith('/item/') : path.startsWith(to);
    return routeLink(to, label, {'aria-current': isHere ? 'page' : null});
  }));
}

/** Begin with an invitation, or with the session of this browser. */
async function begin(invitation) {
  try {
    context.member = await enter(invitation);
    context.project = await get('project');
    document.getElementById('open-guidelines').hidden = false;
    await route();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.isPassing) showTrouble(problem, () => begin(invitation));
    else view = showEntry(problem, begin);
  }
}

/** The invitation behind the address's #; it leaves the address bar at once. */
function invited() {
  const invitation = new URLSearchParams(location.hash.slice(1)).get('invitation');
  if (invitation) history.replaceState(null, '', location.pathname);
  return invitation;
}

listenToHeader(go);
window.addEventListener('popstate', route);
window.addEventListener('hashchange', () => { const invitation = invited(); if (invitation) begin(invitation); });

const guidelines = document.getElementById('open-guidelines');
guidelines.hidden = true;
guidelines.addEventListener('click', () => showGuidelines(context.project));
document.getElementById('open-keys').addEventListener('click', showKeys);
listen((key) => {
  if (key === 'g' && context.project) return (showGuidelines(context.project), true);
  return view?.pressed?.(key) ?? false;
});

begin(invited());
