// What is to be run, against what and as whom. It comes from files, or by hand from the environment,
// and never from arguments, which every user of a machine can read.
//
//   AUTHSTACK_PLAN          path of plan.json, as the operator writes it
//   AUTHSTACK_CREDENTIALS   path of credentials.json: {"users": [{"username": "…", "password": "…"}]}, and for
//                           OIDC "oidc": {"clientID": "…", "clientSecret": "…", "redirectURI": "…", "application": "…"}
//
// Without AUTHSTACK_PLAN:
//   AUTHSTACK_PROVIDER            authentik or authelia
//   AUTHSTACK_BASE_URL            for example https://sso.example.com or http://10.0.0.7:9000
//   AUTHSTACK_HOST                the name that people use, if the base URL has another one
//   AUTHSTACK_FLOW                authentik's flow; default: default-authentication-flow
//   AUTHSTACK_FORWARD_AUTH_HOST   the application that forward auth is asked for
//   AUTHSTACK_ITERATIONS, AUTHSTACK_WARM_UP_ITERATIONS, AUTHSTACK_VIRTUAL_USERS
// Without AUTHSTACK_CREDENTIALS: AUTHSTACK_USERNAME and AUTHSTACK_PASSWORD, and for OIDC a client with a secret
// that may ask for openid, profile, email and offline_access and whose redirect URI is never asked for:
//   AUTHSTACK_OIDC_CLIENT_ID, AUTHSTACK_OIDC_CLIENT_SECRET, AUTHSTACK_OIDC_REDIRECT_URI
//   AUTHSTACK_OIDC_APPLICATION    authentik: the slug of its application

// The sizes of a run by hand; the operator's plan names its own.
const sizes = {
  Login: { iterations: 60, warmUpIterations: 12 },
  Dashboard: { iterations: 30, warmUpIterations: 4 },
  ForwardAuth: { iterations: 600, warmUpIterations: 30 },
  Throughput: { iterations: 5000, warmUpIterations: 50 },
  OIDC: { iterations: 120, warmUpIterations: 12 },
  Script: { iterations: 60, warmUpIterations: 6 },
};

// readJSON reads a file and keeps its content out of the error, which could quote a password.
function readJSON(path) {
  const text = open(path);
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Error(`${path} is not JSON`);
  }
}

function whole(name, value, def) {
  if (value === undefined || value === '') return def;
  if (!/^[0-9]+$/.test(value)) throw new Error(`${name} must be a whole number, not ${value}`);
  return parseInt(value, 10);
}

function planOfEnvironment() {
  if (!__ENV.AUTHSTACK_PROVIDER || !__ENV.AUTHSTACK_BASE_URL) {
    throw new Error('set AUTHSTACK_PLAN to the path of a plan.json, or AUTHSTACK_PROVIDER and AUTHSTACK_BASE_URL');
  }
  return {
    format: 'authstack.dev/plan/v1',
    provider: __ENV.AUTHSTACK_PROVIDER,
    baseURL: __ENV.AUTHSTACK_BASE_URL,
    host: __ENV.AUTHSTACK_HOST,
    flow: __ENV.AUTHSTACK_FLOW,
    forwardAuthHost: __ENV.AUTHSTACK_FORWARD_AUTH_HOST,
    scenarios: [],
  };
}

function load() {
  const plan = __ENV.AUTHSTACK_PLAN ? readJSON(__ENV.AUTHSTACK_PLAN) : planOfEnvironment();
  if (plan.format !== 'authstack.dev/plan/v1') {
    throw new Error(`the plan has the format ${plan.format}; these scripts know authstack.dev/plan/v1`);
  }
  if (plan.provider !== 'authentik' && plan.provider !== 'authelia') {
    throw new Error(`the provider is ${plan.provider}; it must be authentik or authelia`);
  }
  plan.baseURL = plan.baseURL.replace(/\/+$/, '');
  const url = /^(https?):\/\/([^/]+)$/.exec(plan.baseURL);
  if (!url) throw new Error(`the base URL is ${plan.baseURL}; it must be http(s)://host[:port] without a path`);
  plan.tls = url[1] === 'https';
  plan.host = plan.host || url[2];
  plan.flow = plan.flow || 'default-authentication-flow';
  plan.maxDurationSeconds = plan.maxDurationSeconds || 870;
  plan.scenarios = plan.scenarios || [];
  // The Pods that share this plan, each with its execution segment.
  plan.pods = plan.pods || 1;
  return plan;
}

const credentials = __ENV.AUTHSTACK_CREDENTIALS ? readJSON(__ENV.AUTHSTACK_CREDENTIALS) : null;

function loadUsers() {
  let users;
  if (credentials) {
    users = credentials.users;
  } else if (__ENV.AUTHSTACK_USERNAME && __ENV.AUTHSTACK_PASSWORD) {
    users = [{ username: __ENV.AUTHSTACK_USERNAME, password: __ENV.AUTHSTACK_PASSWORD }];
  }
  if (!users || users.length === 0) {
    throw new Error('set AUTHSTACK_CREDENTIALS to the path of a credentials.json, or AUTHSTACK_USERNAME and AUTHSTACK_PASSWORD');
  }
  return users;
}

// loadClient is the client of OpenID Connect, or null where there is none.
function loadClient() {
  if (credentials) return credentials.oidc || null;
  const found = {
    clientID: __ENV.AUTHSTACK_OIDC_CLIENT_ID,
    clientSecret: __ENV.AUTHSTACK_OIDC_CLIENT_SECRET,
    redirectURI: __ENV.AUTHSTACK_OIDC_REDIRECT_URI,
    application: __ENV.AUTHSTACK_OIDC_APPLICATION,
  };
  return found.clientID && found.clientSecret && found.redirectURI ? found : null;
}

export const plan = load();
export const users = loadUsers();
export const client = loadClient();

// sizeOf is the size of a scenario: the plan's, or by hand the environment's.
export function sizeOf(name) {
  const size = plan.scenarios.find((s) => s.name === name) || {
    name,
    iterations: whole('AUTHSTACK_ITERATIONS', __ENV.AUTHSTACK_ITERATIONS, sizes[name].iterations),
    warmUpIterations: whole('AUTHSTACK_WARM_UP_ITERATIONS', __ENV.AUTHSTACK_WARM_UP_ITERATIONS, sizes[name].warmUpIterations),
    virtualUsers: whole('AUTHSTACK_VIRTUAL_USERS', __ENV.AUTHSTACK_VIRTUAL_USERS, 1),
  };
  return size;
}
