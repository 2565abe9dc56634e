// Authelia's first factor and its forward-auth check.
import { check } from 'k6';
import { jsonOf, judge, status } from './browser.js';
import { plan } from './plan.js';
import { ok } from './record.js';

// login logs the browser in and returns the outcome; named as in authentik.js. The answer sets a new
// session cookie in place of any old one.
export function login(browser, user, named = true) {
  const res = browser.send('POST', '/api/firstfactor', {
    username: user.username,
    password: user.password,
    keepMeLoggedIn: false,
    requestMethod: 'GET',
  });
  const complaint = (r) => {
    if (r.status !== 200) return `status ${r.status}`;
    const body = jsonOf(r);
    if (!body || body.status !== 'OK') return 'first factor refused';
    return browser.cookies.length > 0 ? '' : 'no session cookie';
  };
  if (named) browser.record('firstfactor', res, complaint);
  const outcome = judge(res, complaint);
  check(outcome, { 'the login left a session cookie': (o) => o.outcome === 'ok' });
  return outcome;
}

export const allowed = status(200);
// 302 (303) sends a browser to the portal, 401 tells a program.
export const refused = status(302, 303, 401);

// ask is the question of a reverse proxy about one request for the application. cookie stands in for
// what the browser would send; undefined is the browser's own.
export function ask(browser, cookie) {
  const headers = {
    'X-Forwarded-Method': 'GET',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': plan.forwardAuthHost,
    'X-Forwarded-Uri': '/',
    Accept: 'text/html',
  };
  if (cookie === undefined) cookie = browser.cookieHeader(plan.forwardAuthHost);
  // Set in any case: an empty one keeps the browser's own from being sent.
  headers.Cookie = cookie;
  return browser.send('GET', '/api/authz/forward-auth', null, headers);
}

// firstSight records the first check of the session of a browser that has just logged in.
export function firstSight(browser, phase) {
  browser.phase = phase;
  browser.failure = null;
  browser.record('first-sight', ask(browser), allowed);
  return browser.failure || ok;
}

// strangersCookie looks like a session's and belongs to nobody: always the same, so that the session
// store does not grow with the test.
export const strangersCookie = () => 'authelia_session=AuthStackLatencyForeignSession00';
