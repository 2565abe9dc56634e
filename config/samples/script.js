// Somebody logs in to authentik and searches among the applications, four times.
import http from 'k6/http';
import { check } from 'k6';
import { baseURL, browser, headers, host, login, ok } from './lib/stack.js';

// A session for each virtual user, made in its first iteration, which is warm-up.
let cookies = null;

export default function () {
  if (!cookies) {
    const fresh = browser();
    const outcome = login(fresh);
    if (outcome !== ok) return outcome;
    cookies = fresh.cookieHeader(host);
  }
  for (const word of ['mail', 'wiki', 'git', 'files']) {
    const answer = http.get(`${baseURL}/api/v3/core/applications/?search=${word}`, {
      headers: Object.assign({ Cookie: cookies }, headers),
      tags: { endpoint: 'search' },
    });
    check(answer, { 'the search gave a list': (r) => r.status === 200 && Array.isArray(r.json('results')) });
  }
  return ok;
}
