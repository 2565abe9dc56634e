// How figures leave the scripts: as metrics of our own, which the output extension sorts into
// histograms by the tags scenario, endpoint, phase and outcome. k6's own http_req_* cannot serve: an
// answer with status 200 can still refuse a login, and only the script knows.
import { Counter, Trend } from 'k6/metrics';

const trends = {
  request: new Trend('authstack_request', true),
  whole: new Trend('authstack_whole', true),
  dns: new Trend('authstack_dns', true),
  connect: new Trend('authstack_connect', true),
  tls: new Trend('authstack_tls', true),
  wait: new Trend('authstack_wait', true),
  receive: new Trend('authstack_receive', true),
};
const iterations = new Counter('authstack_iterations');

// The outcomes. A wrong answer came and was not what the endpoint should give; none did not come.
export const ok = { outcome: 'ok' };
export const wrong = (kind) => ({ outcome: 'wrong', failure: kind });
export const none = (code) => ({ outcome: 'none', failure: `no answer (${code})` });

// totalOf is how long the client waited: for a connection (queueing, DNS, connect, TLS), then for
// sending, the first byte and the rest. k6's duration leaves the first part out.
export const totalOf = (res) => res.timings.blocked + res.timings.duration;

// request records one request, in milliseconds with their fraction.
export function request(endpoint, phase, res, outcome) {
  const tags = Object.assign({ endpoint, phase }, outcome);
  const t = res.timings;
  trends.request.add(totalOf(res), tags);
  if (outcome !== ok || phase !== 'measure') return;
  trends.wait.add(t.waiting, tags);
  trends.receive.add(t.receiving, tags);
  // A reused connection has none of these; as zeros they would only hide those that were opened.
  if (t.connecting > 0) {
    trends.dns.add(Math.max(0, t.blocked - t.connecting - t.tls_handshaking), tags);
    trends.connect.add(t.connecting, tags);
    if (t.tls_handshaking > 0) trends.tls.add(t.tls_handshaking, tags);
  }
}

// whole records a composite of several requests, in milliseconds.
export function whole(endpoint, phase, duration, outcome) {
  trends.whole.add(duration, Object.assign({ endpoint, phase }, outcome));
}

// iteration counts an iteration that came to its end.
export function iteration(phase) {
  iterations.add(1, { phase });
}
