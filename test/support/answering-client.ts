import { expect } from 'vitest'
import { Connection } from '../../src/compute/remote/connection.ts'
import { ComputeClient } from '../../src/labs/computes/compute-client.ts'
import { refusal } from './lying-compute.ts'

/** The client of a compute that answers everything with this. */
export const clientOf = (body: unknown): ComputeClient =>
  new ComputeClient(new Connection({ name: 'one', send: async () => Response.json(body) }))

/** The answer was refused with such a message. */
export const isBadGateway = async (asked: Promise<unknown>, message: RegExp): Promise<void> =>
  expect(await refusal(asked)).toMatchObject({
    ...{ status: 502, code: 'compute-failed', message: expect.stringMatching(message) },
  })
