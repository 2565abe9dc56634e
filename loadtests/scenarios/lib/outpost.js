// The forward-auth check of authentik's embedded outpost, as Traefik asks it. A session of the outpost
// is a matter of its own: the browser is sent from the outpost to the provider's authorisation, there
// through its flow, and back to the outpost's callback with a code.
import { jsonOf, judge, status } from './browser.js';
import { ok, wrong } from './record.js';
import { plan } from './plan.js';

export const allowed = status(200);
export const refused = status(302, 401, 403);

const maxRequests = 12;

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
  return browser.send('GET', `https://${plan.forwardAuthHost}/outpost.goauthentik.io/auth/traefik`, null, headers);
}

// enter gives a browser that is logged in to authentik its session with the outpost.
export function enter(browser) {
  let res = ask(browser);
  for (let i = 0; i < maxRequests; i++) {
    if (res.status === 200 && i > 0) {
      const challenge = jsonOf(res);
      if (!challenge || challenge.component !== 'xak-flow-redirect') return wrong('outpost login asks for consent');
      res = browser.send('GET', challenge.to);
      continue;
    }
    const outcome = judge(res, status(200, 302));
    if (outcome !== ok) return outcome;
    if (res.status === 200) return ok;
    const to = res.headers.Location || '';
    // Back at the application: the callback has set the session's cookie.
    const home = to.startsWith(`https://${plan.forwardAuthHost}/`) && !to.includes('/outpost.goauthentik.io/');
    if (home) return ok;
    const flow = /\/if\/flow\/([^/]+)\/(?:\?(.*))?$/.exec(to);
    res = browser.send('GET', flow ? `/api/v3/flows/executor/${flow[1]}/?query=${encodeURIComponent(flow[2] || '')}` : to);
  }
  return wrong('outpost login goes round in circles');
}
