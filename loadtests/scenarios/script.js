// Script: a script of the user's own, user.js beside this one, under the same load models and guards as
// every other scenario. Its default function is one iteration. Endpoints: script (the whole iteration,
// from beginning to end, sleep() included) and one for each tag endpoint that its requests carry.
// docs/own-script.md is the page for its author; lib/stack.js is what it may import.
import exec from 'k6/execution';
import { sizeOf, users } from './lib/plan.js';
import { ok, whole } from './lib/record.js';
import { clock, optionsFor, runScript } from './lib/run.js';

const names = ['Script'];

// k6 reads the options of this script and never those of user.js. No redirect is followed, since the
// products redirect to the name that people use, which is not to be had from in here.
export const options = Object.assign(optionsFor(names), {
  maxRedirects: 0,
  noConnectionReuse: sizeOf('Script').connections === 'New',
});

// What k6's options say of the load and of its judgement: the LatencyTest says both, and a script that is
// also run by hand may keep its own.
const notUsed = ['vus', 'iterations', 'duration', 'stages', 'scenarios', 'thresholds', 'summaryTrendStats', 'setupTimeout', 'teardownTimeout'];

// Read here and not imported, so that nothing of it runs before the options above are fixed.
const user = load();

function load() {
  let script;
  try {
    script = require('./user.js');
  } catch (e) {
    throw new Error(withoutSecrets(String(e)));
  }
  for (const name of Object.keys(script.options || {})) {
    if (!notUsed.includes(name)) {
      throw new Error(`the script sets options.${name}, which would change what is measured or where; remove it. ` +
        `The LatencyTest says how the script is run; of k6's options a script may only keep ${notUsed.join(', ')}, which are not used`);
    }
  }
  if (typeof script.default !== 'function') {
    throw new Error('the script has no default function, which is what one iteration runs; write export default function () { … }. ' +
      'Functions that options.scenarios name are not run');
  }
  for (const name of ['setup', 'teardown']) {
    if (script[name] !== undefined && typeof script[name] !== 'function') throw new Error(`the script exports ${name}, which is no function`);
  }
  return script;
}

// A message of the script may quote what it has read.
function withoutSecrets(text) {
  return users.reduce((hidden, u) => hidden.split(u.password).join('[redacted]'), text);
}

export function setup() {
  return user.setup ? user.setup() : undefined;
}

export function teardown(data) {
  if (user.teardown) user.teardown(data);
}

export async function Script(data) {
  await runScript('Script', names, 'script', async (phase) => {
    // Requests that the script makes with k6/http are measured by the output, which reads this.
    exec.vu.metrics.tags.phase = phase;
    const start = clock();
    const said = await user.default(data);
    const outcome = said && said.outcome ? said : ok;
    whole('script', phase, clock() - start, outcome);
    return outcome;
  });
}
