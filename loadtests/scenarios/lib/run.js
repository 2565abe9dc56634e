// How a scenario's iterations are run: in which phase, in which turn, and what happens to their
// failures. Each scenario is a closed model (shared-iterations): a number of virtual users do a
// number of iterations together. The first of them are the warm-up, by their number in the whole
// test, so that the load does not pause between warm-up and measurement.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { plan, sizeOf } from './plan.js';
import { iteration, ok, whole, wrong } from './record.js';

// After this many iterations in a row without any answer, one virtual user ends the test: the target
// is not there, and ten seconds are enough for a Service to come back.
const patience = 10;
let unanswered = 0;

// optionsFor are k6's options for scenarios that run one after the other.
export function optionsFor(names) {
  const scenarios = {};
  for (const name of names) {
    const size = sizeOf(name);
    scenarios[name] = {
      executor: 'shared-iterations',
      exec: name,
      vus: size.virtualUsers,
      iterations: size.warmUpIterations + size.iterations,
      // k6 must stop by itself before its Job is stopped, or the result is lost with the Pod.
      maxDuration: `${Math.max(10, plan.maxDurationSeconds - 10)}s`,
      gracefulStop: '10s',
    };
  }
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

// awaitTurn lets a scenario wait until those before it are done. k6 can only start scenarios at a
// time, and nobody knows how long a login takes; the count of finished iterations is what all its
// virtual users share.
function awaitTurn(name, names) {
  let before = 0;
  for (const other of names.slice(0, names.indexOf(name))) {
    const size = sizeOf(other);
    before += size.warmUpIterations + size.iterations;
  }
  while (exec.instance.iterationsCompleted < before) sleep(0.05);
}

// run is the body of an iteration. work(phase, number) does it and returns its outcome; wholeEndpoint
// is what a broken script is counted under.
export function run(name, names, wholeEndpoint, work) {
  awaitTurn(name, names);
  const number = exec.scenario.iterationInTest;
  const phase = number < sizeOf(name).warmUpIterations ? 'warmup' : 'measure';
  let outcome;
  try {
    outcome = work(phase, number);
  } catch (e) {
    // k6 would log it and go on, and the run would end well.
    whole(wholeEndpoint, phase, 0, wrong('script error'));
    iteration(phase);
    throw e;
  }
  iteration(phase);
  unanswered = outcome !== ok && outcome.outcome === 'none' ? unanswered + 1 : 0;
  if (unanswered >= patience) {
    exec.test.abort(`no answer from the target in ${patience} iterations in a row`);
  }
  if (unanswered > 0) sleep(1);
}
