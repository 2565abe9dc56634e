// How a scenario's iterations are run: by which load model, in which phase, in which turn, and what
// happens to their failures. The first iterations are the warm-up, by their number in the whole test,
// so that the load does not pause between warm-up and measurement.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { setConnections } from './browser.js';
import { plan, sizeOf } from './plan.js';
import { iteration, ok, scheduled, whole, wrong } from './record.js';

// After this many iterations in a row without any answer, one virtual user ends the test: the target
// is not there, and ten seconds are enough for a Service to come back.
const patience = 10;
let unanswered = 0;

// k6's clock tells the start of a scenario and of an iteration in whole milliseconds; a delay below
// two of them may be no delay at all.
const clockDoubt = 2;

// optionsFor are k6's options for scenarios that run one after the other.
export function optionsFor(names) {
  const scenarios = {};
  for (const name of names) scenarios[name] = Object.assign({ exec: name, gracefulStop: '10s' }, modelOf(sizeOf(name)));
  return {
    scenarios,
    // Eight requests to one host at once are what the dashboard asks for; k6 would do six.
    batch: 32,
    batchPerHost: 32,
    // The URL of a request and its address would make a time series each; secrets hide in URLs.
    systemTags: ['scenario', 'name', 'status', 'error_code', 'expected_response', 'check'],
    userAgent: 'authstack-k6',
  };
}

// modelOf is the executor of k6 that the size of a scenario asks for.
function modelOf(size) {
  // k6 must stop by itself before its Job is stopped, or the result is lost with the Pod.
  const longest = Math.max(10, plan.maxDurationSeconds - 10);
  if (size.rateStepsPerMinute) {
    const stages = [];
    for (const rate of size.rateStepsPerMinute) {
      stages.push({ target: rate, duration: '0s' }, { target: rate, duration: `${size.durationSeconds}s` });
    }
    return Object.assign({
      executor: 'ramping-arrival-rate', startRate: size.rateStepsPerMinute[0], timeUnit: '1m', stages,
    }, usersFor(size));
  }
  if (size.ratePerMinute) {
    const milliseconds = Math.round((size.warmUpIterations + size.iterations - 0.5) * periodOf(size));
    return Object.assign({
      executor: 'constant-arrival-rate', rate: size.ratePerMinute, timeUnit: '1m',
      duration: `${Math.min(Math.max(milliseconds, 1000), longest * 1000)}ms`,
    }, usersFor(size));
  }
  if (size.durationSeconds) {
    return { executor: 'constant-vus', vus: size.virtualUsers, duration: `${Math.min(size.durationSeconds, longest)}s` };
  }
  return {
    executor: 'shared-iterations', vus: size.virtualUsers,
    iterations: size.warmUpIterations + size.iterations, maxDuration: `${longest}s`,
  };
}

// usersFor are the virtual users of an open model, as the plan counts them (internal/latency/users.go).
const usersFor = (size) => ({ preAllocatedVUs: size.preAllocatedVirtualUsers, maxVUs: size.maxVirtualUsers });

// periodOf is the time between two iterations of an open model in milliseconds.
const periodOf = (size) => 60000 / size.ratePerMinute;

// awaitTurn lets a scenario wait until those before it are done. k6 can only start scenarios at a
// time, and nobody knows how long a login takes; the count of finished iterations is what all its
// virtual users share.
function awaitTurn(name, names) {
  let before = 0;
  for (const other of names.slice(0, names.indexOf(name))) {
    const size = sizeOf(other);
    // Each of several Pods has an equal part; the plan's numbers are multiples of theirs.
    before += (size.warmUpIterations + size.iterations) / plan.pods;
  }
  while (exec.instance.iterationsCompleted < before) sleep(0.05);
}

// run is the body of an iteration. work(phase, number) does it and returns its outcome; wholeEndpoint
// is what a broken script is counted under.
export function run(name, names, wholeEndpoint, work) {
  const { phase, number } = begin(name, names);
  let outcome;
  try {
    outcome = work(phase, number);
  } catch (e) {
    broke(wholeEndpoint, phase, 'script error');
    throw e;
  }
  end(phase, outcome);
}

// runScript is run for the script of a user, which may be asynchronous, and whose mistakes are told.
export async function runScript(name, names, wholeEndpoint, work) {
  const { phase, number } = begin(name, names);
  let outcome;
  try {
    outcome = await work(phase, number);
  } catch (e) {
    broke(wholeEndpoint, phase, `script error: ${String((e && e.message) || e).split('\n')[0]}`);
    throw e;
  }
  end(phase, outcome);
}

// clock counts milliseconds with their fraction, to the nanosecond: JavaScript's Date has whole ones
// only, and k6 has no performance.now.
export const clock = () => exec.instance.currentTestRunDuration;

// turn is the iteration that is under way; setup() has none and looks like the first of the warm-up.
let turn = { name: '', phase: 'warmup', number: 0 };
export const currentTurn = () => turn;

function begin(name, names) {
  awaitTurn(name, names);
  const size = sizeOf(name);
  const number = exec.scenario.iterationInTest;
  scheduled(lateness(size, number), stepOf(size));
  setConnections(size.connections);
  turn = { name, phase: number < size.warmUpIterations ? 'warmup' : 'measure', number };
  return turn;
}

// broke counts an iteration in which the script threw: k6 would log it and go on, and the run would end well.
function broke(wholeEndpoint, phase, kind) {
  whole(wholeEndpoint, phase, 0, wrong(kind));
  iteration(phase);
}

function end(phase, outcome) {
  iteration(phase);
  unanswered = outcome !== ok && outcome.outcome === 'none' ? unanswered + 1 : 0;
  if (unanswered >= patience && inFirstStep()) {
    exec.test.abort(`no answer from the target in ${patience} iterations in a row, at last: ${outcome.failure}`);
  }
  if (unanswered > 0) sleep(1);
}

// lateness is by how many milliseconds an iteration began after the moment that the schedule of an open
// model wanted, or null. In steps k6 begins an iteration in time or not at all.
function lateness(size, number) {
  if (size.rateStepsPerMinute) return 0;
  if (!size.ratePerMinute) return null;
  const late = Date.now() - (exec.scenario.startTime + number * periodOf(size));
  return late < clockDoubt ? 0 : late;
}

// inFirstStep is whether no rate has risen yet: a stack that answers nobody beyond is the result of the steps.
function inFirstStep() {
  const size = sizeOf(turn.name);
  return !size.rateStepsPerMinute || stepOf(size) === size.rateStepsPerMinute[0];
}

// stepOf is the rate of the step that is under way, or null.
function stepOf(size) {
  if (!size.rateStepsPerMinute) return null;
  const step = Math.floor((Date.now() - exec.scenario.startTime) / 1000 / size.durationSeconds);
  return size.rateStepsPerMinute[Math.min(step, size.rateStepsPerMinute.length - 1)];
}
