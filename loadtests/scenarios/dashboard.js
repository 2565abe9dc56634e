// Dashboard: a person who is logged in looks at the list of applications, eight times in sequence and
// eight times in parallel. authentik only. Endpoints: dashboard-sequential (the sum of the eight) and
// dashboard-parallel (from the first question to the last answer), and each of the requests as
// applications-sequential and applications-parallel.
import http from 'k6/http';
import { Browser, jsonOf, status } from './lib/browser.js';
import { plan } from './lib/plan.js';
import { login, userOf } from './lib/provider.js';
import { ok, totalOf, whole } from './lib/record.js';
import { clock, optionsFor, run } from './lib/run.js';

const path = '/api/v3/core/applications/';
const times = 8;

// Logged in once per virtual user, before anything is measured.
let browser = null;

function listed(res) {
  const complaint = status(200)(res);
  if (complaint) return complaint;
  const body = jsonOf(res);
  return body && Array.isArray(body.results) ? '' : 'not a list of applications';
}

export function lookTwice(phase, number) {
  if (plan.provider !== 'authentik') throw new Error('Dashboard lists the applications of authentik; Authelia has none');
  if (!browser) {
    const fresh = new Browser(phase);
    const outcome = login(fresh, userOf(number), false);
    if (outcome !== ok) {
      whole('dashboard-sequential', phase, 0, outcome);
      whole('dashboard-parallel', phase, 0, outcome);
      return outcome;
    }
    browser = fresh;
  }
  const outcomes = [sequential(phase), parallel(phase)];
  const bad = outcomes.find((o) => o !== ok);
  // A session that is no longer taken is not tried again.
  if (bad) browser = null;
  return bad || ok;
}

function reset(phase) {
  browser.phase = phase;
  browser.elapsed = 0;
  browser.failure = null;
}

function sequential(phase) {
  reset(phase);
  for (let i = 0; i < times; i++) {
    browser.record('applications-sequential', browser.send('GET', path), listed);
  }
  const outcome = browser.failure || ok;
  whole('dashboard-sequential', phase, browser.elapsed, outcome);
  return outcome;
}

function parallel(phase) {
  reset(phase);
  const requests = [];
  for (let i = 0; i < times; i++) requests.push(browser.prepare('GET', path));
  const start = clock();
  const answers = http.batch(requests);
  // The slowest request is the lower bound, should the machine's clock be set back meanwhile.
  const wall = Math.max(clock() - start, ...answers.map(totalOf));
  for (const res of answers) browser.record('applications-parallel', res, listed);
  const outcome = browser.failure || ok;
  whole('dashboard-parallel', phase, wall, outcome);
  return outcome;
}

export const options = optionsFor(['Dashboard']);
export function Dashboard() {
  run('Dashboard', ['Dashboard'], 'dashboard-parallel', lookTwice);
}
