// OIDC: a person with a session opens an application that signs in by OpenID Connect, and an application
// that was signed in to before renews its tokens. Endpoints:
//   code-flow       the whole until the application knows who it is: authorization, token and userinfo
//   authorization   from the request to the code, for a client whose consent is implicit: one request (the sum
//                   of them where the product wants more)
//   token           the code for tokens, with PKCE (S256) and the client's secret
//   userinfo        who it is, by the access token
//   jwks            the keys that ID tokens are signed with
//   refresh         a refresh token for new tokens; each virtual user has one token after the other, from
//                   an authorization with offline_access before the first. Both products ask for consent
//                   then, whatever the client's mode; it is given, and is in no figure
// Nothing is taken on trust: a wrong issuer, audience, nonce or subject, an access token that stays the
// same after a refresh, an ID token signed with a key that the provider does not publish, is a failure.
//
// Needs a client: the operator makes one in authentik for its Jobs; Authelia's are in its configuration.
import { Browser, jsonOf, judge, status } from './lib/browser.js';
import { authorize, endpoints, redeem, refresh, subjectOf, wrongJWKS, wrongTokens } from './lib/oidc.js';
import { client } from './lib/plan.js';
import { login, userOf } from './lib/provider.js';
import { ok, request, unasked, whole } from './lib/record.js';
import { optionsFor, run } from './lib/run.js';

// Of this virtual user: the session, and the tokens that are renewed.
let browser = null;
let lasting = null;

export function openApplication(phase, number) {
  if (!client) throw new Error('OIDC needs a client: see AUTHSTACK_OIDC_CLIENT_ID in lib/plan.js');
  if (!browser) {
    const fresh = new Browser(phase);
    const outcome = login(fresh, userOf(number), false);
    if (outcome !== ok) {
      whole('code-flow', phase, 0, outcome);
      return outcome;
    }
    browser = fresh;
  }
  browser.phase = phase;
  const outcomes = [signIn(phase), renew(phase)];
  return outcomes.find((o) => o !== ok) || ok;
}

// signIn is an authorization and what the application's server makes of its code.
function signIn(phase) {
  browser.elapsed = 0;
  const got = authorize(browser, 'openid profile email');
  if (got.res) request('authorization', phase, got.res, got.outcome);
  else whole('authorization', phase, browser.elapsed, got.outcome);
  if (got.outcome !== ok) {
    whole('code-flow', phase, 0, got.outcome);
    // A session that is no longer taken is not tried again.
    browser = null;
    return got.outcome;
  }
  // The application's server has connections and no cookies of its own.
  const application = new Browser(phase);
  const res = redeem(application, got);
  const tokens = jsonOf(res);
  if (application.record('token', res, (r) => wrongTokens(r, { nonce: got.nonce }))) {
    const who = application.send('GET', endpoints.userinfo, null, { Authorization: `Bearer ${tokens.access_token}` });
    application.record('userinfo', who, (r) => status(200)(r) || ((jsonOf(r) || {}).sub === subjectOf(tokens) ? '' : 'userinfo of somebody else'));
  }
  whole('code-flow', phase, browser.elapsed + application.elapsed, application.failure || ok);
  if (!application.failure) {
    application.record('jwks', application.send('GET', endpoints.jwks), (r) => status(200)(r) || wrongJWKS(jsonOf(r), tokens.id_token));
  }
  return application.failure || ok;
}

// renew takes the next tokens for the refresh token, once there is one.
function renew(phase) {
  const application = new Browser(phase);
  if (!lasting) {
    if (!browser) return ok; // Signing in has failed, and was counted.
    const got = authorize(browser, 'openid profile email offline_access');
    const tokens = got.outcome === ok ? redeem(application, got) : null;
    const outcome = tokens ? judge(tokens, (r) => wrongTokens(r, { nonce: got.nonce, refreshable: true })) : got.outcome;
    if (outcome !== ok) {
      unasked('refresh', phase, outcome);
      return outcome;
    }
    lasting = jsonOf(tokens);
  }
  const res = refresh(application, lasting.refresh_token);
  const good = application.record('refresh', res, (r) => wrongTokens(r, { before: lasting }));
  // Without a new refresh token the old one stays good (RFC 6749, section 6). A refused one is not tried again.
  lasting = good ? Object.assign({}, lasting, jsonOf(res)) : null;
  return application.failure || ok;
}

export const options = optionsFor(['OIDC']);
export function OIDC() {
  run('OIDC', ['OIDC'], 'code-flow', openApplication);
}
