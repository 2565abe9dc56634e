// A browser, as far as a login needs one: it keeps cookies, and it speaks to the stack as the reverse
// proxy in front of it would. k6's own cookie jar cannot serve: the products mark their cookies
// Secure, and a jar never sends those over the plain http that is spoken inside a cluster.
import http from 'k6/http';
import { plan } from './plan.js';
import { none, ok, request, totalOf, wrong } from './record.js';

const timeout = '30s';

// Whether each request opens a connection, which k6 can only be told for all scenarios of a test.
let newConnections = false;
export function setConnections(mode) {
  newConnections = mode === 'New';
}

export class Browser {
  constructor(phase) {
    this.phase = phase;
    this.cookies = [];
    // elapsed is the sum of this browser's requests in milliseconds, as the client saw them.
    this.elapsed = 0;
    // failure is the outcome of the first request that failed.
    this.failure = null;
  }

  // send makes a request and takes up its cookies. url is a path, or an absolute URL of any host,
  // which is asked of the stack itself by that name. A body that is a string is a form, else JSON.
  send(method, url, body, headers) {
    const req = this.prepare(method, url, body, headers);
    const res = http.request(req.method, req.url, req.body, req.params);
    this.elapsed += totalOf(res);
    this.keep(res, hostOf(url));
    return res;
  }

  // prepare is the request in the form of http.batch.
  prepare(method, url, body, headers) {
    const host = hostOf(url);
    const all = { Accept: 'application/json', 'User-Agent': 'authstack-k6' };
    // Through https it is the reverse proxy in front that adds these; the name of another host than
    // the base URL's must be sent in any case.
    if (!plan.tls || host !== plan.host) all.Host = host;
    if (!plan.tls) {
      all['X-Forwarded-Proto'] = 'https';
      all['X-Forwarded-Host'] = host;
    }
    if (newConnections) all.Connection = 'close';
    const cookie = this.cookieHeader(host);
    if (cookie) all.Cookie = cookie;
    const text = typeof body === 'string';
    if (body) all['Content-Type'] = text ? 'application/x-www-form-urlencoded' : 'application/json';
    return {
      method,
      url: plan.baseURL + pathOf(url),
      body: text || !body ? body || null : JSON.stringify(body),
      params: {
        headers: Object.assign(all, headers),
        redirects: 0,
        timeout,
        // An empty jar each time, or k6 would send cookies beside ours.
        jar: new http.CookieJar(),
        // record measures it; the output is told not to measure it a second time.
        tags: { name: method, recorded: 'yes' },
        responseCallback: null,
      },
    };
  }

  // record judges an answer and records it under the endpoint's name. expect returns '' for an answer
  // as it should be, or says in a few words what is wrong with it, without quoting the answer.
  record(endpoint, res, expect) {
    const outcome = judge(res, expect);
    request(endpoint, this.phase, res, outcome);
    if (outcome !== ok && !this.failure) this.failure = outcome;
    return outcome === ok;
  }

  keep(res, host) {
    for (const name of Object.keys(res.cookies || {})) {
      for (const c of res.cookies[name]) {
        const domain = (c.domain || host).replace(/^\./, '').replace(/:[0-9]+$/, '');
        this.cookies = this.cookies.filter((old) => old.name !== name || old.domain !== domain);
        const expired = c.max_age < 0 || (c.expires > 0 && c.expires < Date.now());
        // Without a domain of its own, a cookie goes back to the host that set it and to no other.
        if (!expired && c.value !== '') this.cookies.push({ name, value: c.value, domain, below: !!c.domain });
      }
    }
  }

  cookieHeader(host) {
    const bare = host.replace(/:[0-9]+$/, '');
    return this.cookies
      .filter((c) => bare === c.domain || (c.below && bare.endsWith(`.${c.domain}`)))
      .map((c) => `${c.name}=${c.value}`)
      .join('; ');
  }

  // cookie returns the value of a cookie whose name begins so, or undefined.
  cookie(prefix) {
    return this.cookies.find((c) => c.name.startsWith(prefix));
  }
}

// judge is the outcome of an answer.
export function judge(res, expect) {
  if (res.status === 0) return none(res.error_code, res.error);
  const complaint = expect(res);
  return complaint ? wrong(complaint) : ok;
}

// status expects one of the statuses.
export const status = (...wanted) => (res) => (wanted.includes(res.status) ? '' : `status ${res.status}`);

// jsonOf is the body as an object, or null.
export function jsonOf(res) {
  try {
    return JSON.parse(res.body);
  } catch (e) {
    return null;
  }
}

const absolute = /^https?:\/\/([^/?#]+)(.*)$/;

function hostOf(url) {
  const m = absolute.exec(url);
  return m ? m[1] : plan.host;
}

function pathOf(url) {
  const m = absolute.exec(url);
  const path = m ? m[2] || '/' : url;
  return path.startsWith('/') ? path : `/${path}`;
}
