// Throughput: the first thing that a login page needs, again and again, over the connections of all
// virtual users: what hey and wrk do. That is authentik's first challenge (with the session that it
// makes for each stranger) and Authelia's portal page. Endpoints: throughput (the whole) and page.
import { Browser, status } from './lib/browser.js';
import { plan } from './lib/plan.js';
import { ok, whole } from './lib/record.js';
import { optionsFor, run } from './lib/run.js';

const page = plan.provider === 'authelia' ? '/' : `/api/v3/flows/executor/${plan.flow}/?query=`;

export function askPage(phase) {
  const browser = new Browser(phase);
  browser.record('page', browser.send('GET', page), status(200));
  const outcome = browser.failure || ok;
  whole('throughput', phase, browser.elapsed, outcome);
  return outcome;
}

export const options = optionsFor(['Throughput']);
export function Throughput() {
  run('Throughput', ['Throughput'], 'throughput', askPage);
}
