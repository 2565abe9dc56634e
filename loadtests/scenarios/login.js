// Login: a person logs in with a fresh browser. Endpoints: login (the whole: the sum of its requests
// as the client saw them), and for authentik identification-get, identification-post, password-get,
// password-post, mfa-get, login-get; for Authelia firstfactor.
//
// By hand: AUTHSTACK_PROVIDER=… AUTHSTACK_BASE_URL=… AUTHSTACK_USERNAME=… AUTHSTACK_PASSWORD=… k6 run login.js
import { Browser } from './lib/browser.js';
import { login, userOf } from './lib/provider.js';
import { whole } from './lib/record.js';
import { optionsFor, run } from './lib/run.js';

export function loginOnce(phase, number) {
  const browser = new Browser(phase);
  const outcome = login(browser, userOf(number));
  whole('login', phase, browser.elapsed, outcome);
  return outcome;
}

export const options = optionsFor(['Login']);
export function Login() {
  run('Login', ['Login'], 'login', loginOnce);
}
