// Time and pay, by annotator.
import {fill, main, make} from './dom.js';
import {get} from './requests.js';
import {table} from './tables.js';
import {duration} from './work.js';

export async function showPayments() {
  const {currency, rows} = await get('pay');
  const money = (amount) => amount.toFixed(2);
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
  const all = Object.fromEntries(['items', 'seconds', 'pay', 'bonus', 'total'].map((name) => [name, sum(name)]));
  fill(main(), make('h1', {}, 'Time and pay'), make('p', {class: 'quiet'}, `Amounts in ${currency}, by the rules of project.toml. Pauses are not counted as time.`),
    rows.length ? table('Pay', [
      ['Name', (row) => row.name], ['Questions', (row) => row.items, true], ['Time', (row) => duration(row.seconds), true],
      ['Pay', (row) => money(row.pay), true], ['Bonus', (row) => money(row.bonus), true], ['Total', (row) => money(row.total), true],
    ], rows, {name: 'All', ...all}) : make('p', {}, 'Nobody has worked yet.'));
  return {title: 'Time and pay'};
}
