import { callsAt } from '../support/calls.ts'
import { oneRequestEach } from '../support/one-request-each.ts'
import type { Front } from './near-and-far.ts'

export const adminToken = 'the-admin-token-of-bench'
/** What the Worker is given. */
export const bindings = {
  ...{ FLEET_KEY: 'a secret of the bench that is long enough', ADMIN_TOKEN: adminToken, RATE_PER_S: '0' },
}

/** Each request by a connection of its own: workerd may just be closing one that was idle, as between two long parts of a measurement. */
export const ownConnection = { dispatcher: oneRequestEach } as const

/** The Worker at that address, asked by who may do everything. */
export const asAdmin = (url: string): Front => callsAt(url, adminToken, ownConnection)
