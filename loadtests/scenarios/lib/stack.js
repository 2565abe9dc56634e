// What a user's own script needs to know of the stack: where it is, as whom, and how a login is made.
//
//   import http from 'k6/http';
//   import { baseURL, headers } from './lib/stack.js';
//   export default function () {
//     http.get(`${baseURL}/api/v3/root/config/`, { headers, tags: { endpoint: 'config' } });
//   }
import { Browser as Recorder, status } from './browser.js';
import { plan } from './plan.js';
import { login as loginOf, userOf } from './provider.js';
import { ok, wrong } from './record.js';
import { currentTurn } from './run.js';

// baseURL is where the identity provider answers, without a slash at the end. In a Job it is an address:
// names are not looked up there.
export const baseURL = plan.baseURL;
// host is the name that people use, provider authentik or authelia.
export const host = plan.host;
export const provider = plan.provider;

// headers are those that the reverse proxy in front of the stack would add.
export const headers = { Host: plan.host, 'X-Forwarded-Host': plan.host, 'X-Forwarded-Proto': 'https' };

// user is the test user of the present iteration: {username, password}.
export const user = () => userOf(currentTurn().number);

// browser is a fresh one, whose requests are recorded by its method record(endpoint, answer, expect).
export const browser = () => new Recorder(currentTurn().phase);

// login logs such a browser in, without a record of its own, and returns the outcome.
export const login = (b) => loginOf(b, user(), false);

// What a default function may return: ok, or wrong('what was wrong in a few words').
export { ok, status, wrong };
