// OpenID Connect's code flow, as far as the scenario OIDC needs it. Nothing of an answer gets into a
// failure, but for the error codes that RFC 6749 and OpenID Connect name.
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
import { flowOf, loggedOut } from './authentik.js';
import { jsonOf, judge, status } from './browser.js';
import { client, plan } from './plan.js';
import { ok, wrong } from './record.js';

const portal = `https://${plan.host}`;
const slug = client && client.application;

// endpoints as their discovery documents name them (authentik 2025.2 to 2026.8, Authelia 4.38 and 4.39).
export const endpoints = plan.provider === 'authentik'
  ? { issuer: `${portal}/application/o/${slug}/`, authorization: '/application/o/authorize/', token: '/application/o/token/',
    userinfo: '/application/o/userinfo/', jwks: `/application/o/${slug}/jwks/` }
  : { issuer: portal, authorization: '/api/oidc/authorization', token: '/api/oidc/token', userinfo: '/api/oidc/userinfo', jwks: '/jwks.json' };

// An authorization with consent has four with authentik and three with Authelia; more than this goes
// round in circles.
const maxRequests = 12;

const random = () => encoding.b64encode(crypto.randomBytes(32), 'rawurl');
const form = (fields) => Object.keys(fields).map((k) => `${k}=${encodeURIComponent(fields[k])}`).join('&');

// authorize takes a browser with a session to the code, and consents where it is asked. It returns the
// outcome, the code with the nonce and the verifier that belong to it, and the answer if there was only one.
export function authorize(browser, scope) {
  const wanted = { state: random(), nonce: random(), verifier: random() };
  const query = form({
    response_type: 'code', client_id: client.clientID, redirect_uri: client.redirectURI, scope,
    state: wanted.state, nonce: wanted.nonce, code_challenge: crypto.sha256(wanted.verifier, 'base64rawurl'), code_challenge_method: 'S256',
  });
  const first = browser.send('GET', `${endpoints.authorization}?${query}`, null, { Accept: 'text/html' });
  let res = first;
  for (let i = 0; i < maxRequests; i++) {
    const outcome = judge(res, (r) => (status(200, 302, 303)(r) ? `authorization: status ${r.status}` : ''));
    if (outcome !== ok) return { outcome };
    const answer = res.status === 200 ? jsonOf(res) || {} : {};
    const to = answer.to || (answer.data && answer.data.redirect_uri) || res.headers.Location || '';
    if (to.startsWith(client.redirectURI)) {
      return Object.assign({ outcome: ok, res: res === first ? first : null }, wanted, codeOf(to, wanted.state));
    }
    const next = plan.provider === 'authentik' ? stepOfAuthentik(browser, res, answer, to) : stepOfAuthelia(browser, to, scope);
    if (next.outcome) return next;
    res = next;
  }
  return { outcome: wrong('authorization goes round in circles') };
}

// stepOfAuthentik goes on through the authorization flow.
function stepOfAuthentik(browser, res, answer, to) {
  if (loggedOut(to)) return { outcome: wrong('authorization: logged out') };
  if (res.status !== 200 || answer.component === 'xak-flow-redirect') return browser.send('GET', flowOf(to));
  if (answer.component !== 'ak-stage-consent') {
    return { outcome: wrong(`authorization: ${String(answer.component || 'not a challenge').slice(0, 40)}`) };
  }
  // Somebody who is logged in must show that the form came from the site itself; an address of https is
  // checked for where it came from as well.
  const csrf = browser.cookie('authentik_csrf');
  return browser.send('POST', flowOf(res.url), { component: answer.component, token: answer.token },
    { 'X-authentik-CSRF': csrf ? csrf.value : '', Origin: portal, Referer: `${portal}/` });
}

// stepOfAuthelia answers the page that asks for consent. Without offline_access a client with implicit
// consent is never asked, so that a code costs one request.
function stepOfAuthelia(browser, to, scope) {
  const path = to.replace(/^https?:\/\/[^/?#]+/, '');
  if (path.startsWith(endpoints.authorization)) return browser.send('GET', to);
  const error = /[?&]error=([a-z_]{1,40})(&|$)/.exec(path);
  if (error) return { outcome: wrong(`authorization: ${error[1]}`) };
  const asked = /^\/consent\/.*[?&]flow_id=([0-9a-f-]+)/.exec(path);
  if (!asked) return { outcome: wrong('authorization: logged out') };
  if (!scope.includes('offline_access')) return { outcome: wrong("authorization: asks for consent; give the client consent_mode 'implicit'") };
  return browser.send('POST', '/api/oidc/consent', { flow_id: asked[1], client_id: client.clientID, consent: true, pre_configure: false });
}

// codeOf reads the code from the address that the browser is sent back to.
function codeOf(to, state) {
  const fields = {};
  for (const pair of to.slice(client.redirectURI.length).replace(/^[?&]/, '').split('&')) {
    const [name, value] = pair.split('=');
    fields[name] = decodeURIComponent(value || '');
  }
  if (fields.error) return { outcome: wrong(`authorization: ${/^[a-z_]{1,40}$/.test(fields.error) ? fields.error : 'an error'}`) };
  if (fields.state !== state) return { outcome: wrong('authorization: another state') };
  return fields.code ? { code: fields.code } : { outcome: wrong('authorization: no code') };
}

// redeem asks for the tokens of a code.
export const redeem = (application, got) => tokenRequest(application,
  { grant_type: 'authorization_code', code: got.code, redirect_uri: client.redirectURI, code_verifier: got.verifier });

// refresh asks for the tokens of a refresh token.
export const refresh = (application, token) => tokenRequest(application, { grant_type: 'refresh_token', refresh_token: token });

// tokenRequest is the client with its secret in the header (client_secret_basic).
function tokenRequest(application, fields) {
  const secret = encoding.b64encode(`${encodeURIComponent(client.clientID)}:${encodeURIComponent(client.clientSecret)}`);
  return application.send('POST', endpoints.token, form(fields), { Authorization: `Basic ${secret}` });
}

// wrongTokens says what is wrong with an answer of the token endpoint: for a code with its nonce, or after a
// refresh of the tokens before it.
export function wrongTokens(res, { nonce, refreshable, before }) {
  const tokens = jsonOf(res);
  if (res.status !== 200) {
    const code = tokens && /^[a-z_]{1,40}$/.test(tokens.error) ? ` ${tokens.error}` : '';
    return `status ${res.status}${code}`;
  }
  if (!tokens || !tokens.access_token || String(tokens.token_type).toLowerCase() !== 'bearer') return 'no access token';
  if (refreshable && !tokens.refresh_token) return 'no refresh token';
  if (before && tokens.access_token === before.access_token) return 'the same access token after a refresh';
  // A refresh need not give a new ID token (OpenID Connect Core, section 12.2).
  if (before && !tokens.id_token) return '';
  const claims = partOf(tokens.id_token, 1);
  if (!claims) return 'no ID token';
  if (claims.iss !== endpoints.issuer) return 'ID token of another issuer';
  if (![].concat(claims.aud).includes(client.clientID)) return 'ID token for another audience';
  if (nonce && claims.nonce !== nonce) return 'ID token with another nonce';
  if (!claims.sub || (before && claims.sub !== subjectOf(before))) return 'ID token of somebody else';
  return claims.exp > Date.now() / 1000 ? '' : 'ID token that has expired';
}

// subjectOf is who the ID token is about.
export const subjectOf = (tokens) => (partOf(tokens.id_token, 1) || {}).sub;

function partOf(jwt, at) {
  try {
    return JSON.parse(encoding.b64decode(jwt.split('.')[at], 'rawurl', 's'));
  } catch (e) {
    return null;
  }
}

// wrongJWKS says whether the key of an ID token is missing among the published ones.
export function wrongJWKS(set, idToken) {
  const { kid } = partOf(idToken, 0) || {};
  return set && Array.isArray(set.keys) && set.keys.some((key) => kid && key.kid === kid) ? '' : 'the key of the ID token is not published';
}
