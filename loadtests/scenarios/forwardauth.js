// ForwardAuth: what a reverse proxy asks for each request that it lets through. Endpoints:
//   authorised              with a session that was seen before
//   unauthorised            with the cookie of a session that is not logged in, always the same one
//   unauthorised-no-cookie  without a cookie, in every tenth iteration only: both products make and
//                           store a session for each of them
//   first-sight             every tenth too, directly after a login. Authelia: the first check of the
//                           session. authentik, whose outpost has a session of its own, the whole way
//                           to it: start, authorisation, callback and the first check (a sum)
//
// Needs the plan's forwardAuthHost: for Authelia a name below its cookie domain that the access
// control rules allow to the test user, for authentik the external host of a proxy provider in
// forward-auth mode on the embedded outpost. The operator makes that provider for its Jobs.
import * as authelia from './lib/authelia.js';
import * as outpost from './lib/outpost.js';
import { Browser } from './lib/browser.js';
import { plan } from './lib/plan.js';
import { login, userOf } from './lib/provider.js';
import { ok, onlyRequest, totalOf, unasked, whole } from './lib/record.js';
import { optionsFor, run } from './lib/run.js';

const every = 10;
const product = plan.provider === 'authelia' ? authelia : outpost;

// The session of this virtual user.
let browser = null;

export function askAll(phase, number) {
  if (!plan.forwardAuthHost) throw new Error('ForwardAuth needs forwardAuthHost in the plan (AUTHSTACK_FORWARD_AUTH_HOST)');
  const failures = [];
  if (!browser || number % every === 0) {
    const fresh = new Browser(phase);
    let outcome = login(fresh, userOf(number), false);
    if (outcome === ok) outcome = product.firstSight(fresh, phase);
    else whole('first-sight', phase, 0, outcome);
    if (outcome === ok) {
      browser = fresh;
    } else if (!browser) {
      unasked('authorised', phase, outcome);
      onlyRequest('authorised', phase, 0, outcome);
      return outcome;
    }
  }
  browser.phase = phase;
  browser.failure = null;
  const answer = product.ask(browser);
  browser.record('authorised', answer, product.allowed);
  onlyRequest('authorised', phase, totalOf(answer), browser.failure || ok);
  failures.push(browser.failure);
  // A session that is no longer taken is not tried again.
  const lost = browser.failure;

  const stranger = new Browser(phase);
  stranger.record('unauthorised', product.ask(stranger, product.strangersCookie(phase)), product.refused);
  if (number % every === every / 2) {
    stranger.record('unauthorised-no-cookie', product.ask(stranger, ''), product.refused);
  }
  failures.push(stranger.failure);
  if (lost) browser = null;
  return failures.find((f) => f) || ok;
}

export const options = optionsFor(['ForwardAuth']);
export function ForwardAuth() {
  run('ForwardAuth', ['ForwardAuth'], 'authorised', askAll);
}
