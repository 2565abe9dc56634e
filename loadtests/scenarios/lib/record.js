// How figures leave the scripts: as metrics of our own, which the output extension sorts into
// histograms by the tags scenario, endpoint, phase and outcome. k6's own http_req_* cannot serve: an
// answer with status 200 can still refuse a login, and only the script knows.
import { Counter, Trend } from 'k6/metrics';

const trends = {
  request: new Trend('authstack_request', true),
  whole: new Trend('authstack_whole', true),
  intended: new Trend('authstack_intended', true),
  dns: new Trend('authstack_dns', true),
  connect: new Trend('authstack_connect', true),
  tls: new Trend('authstack_tls', true),
  send: new Trend('authstack_send', true),
  wait: new Trend('authstack_wait', true),
  receive: new Trend('authstack_receive', true),
};
const iterations = new Counter('authstack_iterations');
const bytes = new Counter('authstack_bytes');

// What the current iteration has of its schedule; lib/run.js sets it before each. late is by how many
// milliseconds it began after the moment that an open model wanted, null in a closed one; step is the
// rate of the step that it belongs to, null without steps.
let schedule = { late: null, step: null };
export function scheduled(late, step) {
  schedule = { late, step };
}

// The outcomes. A wrong answer came and was not what the endpoint should give; none did not come.
export const ok = { outcome: 'ok' };
export const wrong = (kind) => ({ outcome: 'wrong', failure: kind });
export const none = (code, error) => ({ outcome: 'none', failure: `no answer (${cause(code, error)})` });

// The codes of k6 that a person meets (lib/netext/httpext/error_codes.go of k6 2.2), in words; trail.go has the same.
const causes = {
  1050: 'timed out',
  1101: 'the name is not known',
  1201: 'the connection broke',
  1202: 'the connection broke',
  1210: 'connecting failed',
  1211: 'connecting timed out',
  1212: 'connection refused',
  1213: 'connecting failed',
  1220: 'connection reset',
  1300: 'TLS failed',
  1310: 'the certificate is not trusted',
  1311: 'the certificate is of another name',
};

// cause of an error in words, or k6's number of it. A certificate that has expired has the code for anything, 1000, and the
// words of Go's crypto/x509.
function cause(code, error) {
  if (/certificate has expired or is not yet valid/.test(error)) return 'the certificate has expired or is not yet valid';
  return causes[code] || `error ${code} of k6`;
}

// totalOf is how long the client waited: for a connection (queueing, DNS, connect, TLS), then for
// sending, the first byte and the rest. k6's duration leaves the first part out.
export const totalOf = (res) => res.timings.blocked + res.timings.duration;

// bytesOf an answer's body, which k6 has only as text of 16-bit characters: as the answer says itself, or counted as UTF-8.
function bytesOf(res) {
  const told = Number(res.headers['Content-Length']);
  if (told > 0) return told;
  return /^[\x00-\x7f]*$/.test(res.body) ? res.body.length : encodeURIComponent(res.body).replace(/%../g, '.').length;
}

// request records one request, in milliseconds with their fraction.
export function request(endpoint, phase, res, outcome) {
  const tags = Object.assign({ endpoint, phase }, outcome);
  const t = res.timings;
  trends.request.add(totalOf(res), Object.assign({ status: String(res.status) }, tags));
  if (res.body && phase === 'measure') bytes.add(bytesOf(res), tags);
  if (outcome !== ok || phase !== 'measure') return;
  trends.send.add(t.sending, tags);
  trends.wait.add(t.waiting, tags);
  trends.receive.add(t.receiving, tags);
  // A reused connection has none of these; as zeros they would only hide those that were opened.
  if (t.connecting > 0) {
    trends.dns.add(Math.max(0, t.blocked - t.connecting - t.tls_handshaking), tags);
    trends.connect.add(t.connecting, tags);
    if (t.tls_handshaking > 0) trends.tls.add(t.tls_handshaking, tags);
  }
}

// unasked counts a request that was not made, since what comes before it failed, as one that failed.
export function unasked(endpoint, phase, outcome) {
  trends.request.add(0, Object.assign({ endpoint, phase }, outcome));
}

// whole records a composite of several requests, in milliseconds; in steps once more under the name of
// the step, for example login-at-120.
export function whole(endpoint, phase, duration, outcome) {
  wholeAs(endpoint, phase, duration, outcome);
  if (schedule.step !== null) wholeAs(`${endpoint}-at-${schedule.step}`, phase, duration, outcome);
}

// onlyRequest adds to a request, which is recorded as such, what a whole has besides, where an iteration is about that
// request alone: its duration from the intended start, and its step.
export function onlyRequest(endpoint, phase, duration, outcome) {
  sinceIntended(duration, Object.assign({ endpoint, phase }, outcome), outcome);
  if (schedule.step !== null) wholeAs(`${endpoint}-at-${schedule.step}`, phase, duration, outcome);
}

function wholeAs(endpoint, phase, duration, outcome) {
  const tags = Object.assign({ endpoint, phase }, outcome);
  trends.whole.add(duration, tags);
  sinceIntended(duration, tags, outcome);
}

function sinceIntended(duration, tags, outcome) {
  if (schedule.late !== null && outcome === ok) trends.intended.add(duration + schedule.late, tags);
}

// iteration counts an iteration that came to its end.
export function iteration(phase) {
  iterations.add(1, { phase });
}
