// Runs the scenarios of the plan one after the other, each with its warm-up.
import { lookTwice } from './dashboard.js';
import { askAll } from './forwardauth.js';
import { plan } from './lib/plan.js';
import { optionsFor, run } from './lib/run.js';
import { loginOnce } from './login.js';
import { openApplication } from './oidc.js';
import { askPage } from './throughput.js';

const names = plan.scenarios.map((s) => s.name);
if (names.length === 0) throw new Error('the plan names no scenarios');

export const options = optionsFor(names);

export function Login() {
  run('Login', names, 'login', loginOnce);
}

export function Dashboard() {
  run('Dashboard', names, 'dashboard-parallel', lookTwice);
}

export function ForwardAuth() {
  run('ForwardAuth', names, 'authorised', askAll);
}

export function Throughput() {
  run('Throughput', names, 'throughput', askPage);
}

export function OIDC() {
  run('OIDC', names, 'code-flow', openApplication);
}
