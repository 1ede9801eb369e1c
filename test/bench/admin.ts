import { callsAt } from '../support/calls.ts'
import type { Front } from './near-and-far.ts'

export const adminToken = 'the-admin-token-of-bench'
/** What the Worker is given. */
export const bindings = {
  ...{ FLEET_KEY: 'a secret of the bench that is long enough', ADMIN_TOKEN: adminToken, RATE_PER_S: '0' },
}

/** The Worker at that address, asked by who may do everything. */
export const asAdmin = (url: string): Front => callsAt(url, adminToken)
