// authentik's login through the flow executor, without a browser. With the default flow these are six
// requests:
//   GET  identification     POST identification   -> 302
//   GET  password           POST password         -> 302
//   GET  the MFA stage      -> 302, skipped for a user without a device
//   GET  the login stage    -> xak-flow-redirect: logged in
// A flow that asks for the password beside the name leaves the password stage out.
import { check } from 'k6';
import { jsonOf, judge } from './browser.js';
import { ok, wrong } from './record.js';
import { plan } from './plan.js';

const executor = '/api/v3/flows/executor/';
// A default login has six; more than this is a flow that goes round in circles.
const maxRequests = 20;

// login logs the browser in and returns the outcome. named is false where the login is only the
// means to an end, and then nothing of it is recorded.
export function login(browser, user, named = true) {
  const url = `${executor}${plan.flow}/?query=`;
  let next = { method: 'GET', url };
  // A GET is named after the stage that it turns out to be; expected is where it fails before.
  let expected = 'identification-get';
  for (let i = 0; i < maxRequests; i++) {
    const res = browser.send(next.method, next.url, next.body);
    const challenge = res.status === 200 ? jsonOf(res) : null;
    const endpoint = nameOf(next, challenge) || expected;
    const complain = (r) => complaint(r, challenge, next);
    const outcome = judge(res, complain);
    if (named) browser.record(endpoint, res, complain);
    if (outcome !== ok) return outcome;

    if (res.status === 302) {
      const needsPassword = next.body && next.body.password === undefined;
      expected = !next.body ? 'login-get' : needsPassword ? 'password-get' : 'mfa-get';
      next = { method: 'GET', url: res.headers.Location };
      continue;
    }
    switch (challenge.component) {
      case 'ak-stage-identification': {
        const body = { component: challenge.component, uid_field: user.username };
        if (challenge.password_fields) body.password = user.password;
        next = { method: 'POST', url, body, endpoint: 'identification-post' };
        break;
      }
      case 'ak-stage-password':
        next = { method: 'POST', url, body: { component: challenge.component, password: user.password }, endpoint: 'password-post' };
        break;
      case 'ak-stage-user-login':
        // Only shown where people may ask to be remembered.
        next = { method: 'POST', url, body: { component: challenge.component, remember_me: false }, endpoint: 'login-post' };
        break;
      case 'xak-flow-redirect': {
        if (challenge.to && challenge.to.includes(executor)) {
          next = { method: 'GET', url: challenge.to };
          expected = 'login-get';
          break;
        }
        const session = browser.cookie('authentik_session') !== undefined;
        check(session, { 'the login left a session cookie': (s) => s });
        return session ? ok : wrong('no session cookie');
      }
      default:
        return wrong(`stage ${challenge.component}`);
    }
  }
  return wrong(`more than ${maxRequests} requests`);
}

// nameOf is the endpoint's name once the answer is known.
function nameOf(sent, challenge) {
  if (sent.endpoint) return sent.endpoint;
  const names = {
    'ak-stage-identification': 'identification-get',
    'ak-stage-password': 'password-get',
    'ak-stage-authenticator-validate': 'mfa-get',
    'xak-flow-redirect': 'login-get',
  };
  return challenge ? names[challenge.component] : undefined;
}

const known = ['ak-stage-identification', 'ak-stage-password', 'ak-stage-user-login', 'xak-flow-redirect'];

// complaint says what is wrong with an answer of the executor, or ''. It never quotes the answer.
function complaint(res, challenge, sent) {
  if (res.status === 302) {
    const to = res.headers.Location || '';
    return to.includes(executor) ? '' : 'redirect out of the flow';
  }
  if (res.status !== 200) return `status ${res.status}`;
  if (!challenge || !challenge.component) return 'not a challenge';
  if (challenge.component === 'ak-stage-authenticator-validate') return 'asks for a second factor';
  if (challenge.component === 'ak-stage-access-denied') return 'access denied';
  if (!known.includes(challenge.component)) return `stage ${String(challenge.component).slice(0, 40)}`;
  if (sent.body && (challenge.response_errors || challenge.component === sent.body.component)) return 'input refused';
  return '';
}

// flowOf is a URL of authentik itself as a path, whatever host stands in it: an embedded outpost that was
// never told its own address sends people to localhost. A page of the flow's web interface becomes the
// question that the interface asks.
export function flowOf(to) {
  const path = to.replace(/^https?:\/\/[^/?#]+/, '');
  const flow = /\/if\/flow\/([^/]+)\/(?:\?(.*))?$/.exec(path);
  return flow ? `${executor}${flow[1]}/?query=${encodeURIComponent(flow[2] || '')}` : path;
}

// loggedOut is whether a page of authentik wants a login first.
export const loggedOut = (to) => to.includes('/flow/default-authentication-flow') || to.includes('/flows/-/default/authentication/');
