// The login of the plan's identity provider.
import * as authelia from './authelia.js';
import * as authentik from './authentik.js';
import { plan, users } from './plan.js';

export const login = plan.provider === 'authelia' ? authelia.login : authentik.login;

// userOf lets the test users take turns.
export const userOf = (number) => users[number % users.length];
