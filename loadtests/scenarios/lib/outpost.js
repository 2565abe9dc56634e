// The forward-auth check of authentik's embedded outpost, as Traefik asks it. The outpost has a session
// of its own: it sends the browser to the provider's authorisation, from there through its flow, and
// back to the outpost's callback with a code (authentik 2025.2 to 2026.8: internal/outpost/proxyv2,
// src/outpost/proxy).
import { flowOf, loggedOut } from './authentik.js';
import { Browser, jsonOf, judge, status } from './browser.js';
import { plan } from './plan.js';
import { ok, whole, wrong } from './record.js';

const outpost = '/outpost.goauthentik.io';
const maxRequests = 12;

// An allowed answer tells the application who asks.
export const allowed = (res) => status(200)(res) || (res.headers['X-Authentik-Username'] ? '' : 'allowed without a user');
export const refused = status(302, 307, 401, 403);

const application = () => `https://${plan.forwardAuthHost}`;

// ask as in authelia.js.
export function ask(browser, cookie) {
  const headers = {
    'X-Forwarded-Method': 'GET',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': plan.forwardAuthHost,
    'X-Forwarded-Uri': '/',
    Accept: 'text/html',
  };
  if (cookie !== undefined) headers.Cookie = cookie;
  return browser.send('GET', `${application()}${outpost}/auth/traefik`, null, headers);
}

// firstSight takes a browser that is logged in to authentik to its session with the outpost and
// records how long that took, with the first check.
export function firstSight(browser, phase) {
  browser.phase = phase;
  browser.elapsed = 0;
  let outcome = enter(browser);
  if (outcome === ok) outcome = judge(ask(browser), allowed);
  whole('first-sight', phase, browser.elapsed, outcome);
  return outcome;
}

function enter(browser) {
  let res = browser.send('GET', `${application()}${outpost}/start?rd=${encodeURIComponent(`${application()}/`)}`);
  for (let i = 0; i < maxRequests; i++) {
    const outcome = judge(res, status(200, 302, 307));
    if (outcome !== ok) return outcome;
    let to = res.headers.Location || '';
    if (res.status === 200) {
      const challenge = jsonOf(res);
      if (!challenge || !challenge.component) return wrong('outpost login: not a challenge');
      if (challenge.component !== 'xak-flow-redirect') return wrong(`outpost login: ${String(challenge.component).slice(0, 40)}`);
      to = challenge.to;
    }
    const home = to.startsWith(`${application()}/`) || to === application();
    // Back at the application: the callback has set the session's cookie.
    if (home && !to.includes(`${outpost}/`)) return ok;
    if (loggedOut(to)) return wrong('outpost login: logged out');
    res = browser.send('GET', home ? to : flowOf(to));
  }
  return wrong('outpost login goes round in circles');
}

// The cookie of this virtual user's stranger.
let stranger = '';

// strangersCookie is the cookie that the outpost gives to somebody who never logs in: got once, so that
// the outpost's sessions do not grow with the test. From 2026.8 it is signed and cannot be made up.
export function strangersCookie(phase) {
  if (!stranger) {
    const fresh = new Browser(phase);
    ask(fresh, '');
    stranger = fresh.cookieHeader(plan.forwardAuthHost);
  }
  return stranger;
}
