import { expect } from 'vitest'
import { RemoteHostAgent } from '../../src/compute/remote/remote-host-agent.ts'
import type { HostAgent } from '../../src/host-agent.ts'
import { refusal } from './lying-compute.ts'

/** The agent of a compute that answers everything with this. */
export const agentThatAnswers = (body: unknown): HostAgent =>
  new RemoteHostAgent({ name: 'one', send: async () => Response.json(body) })

/** The answer was refused with such a message. */
export const isBadGateway = async (asked: Promise<unknown>, message: RegExp): Promise<void> =>
  expect(await refusal(asked)).toMatchObject({
    ...{ status: 502, code: 'compute-failed', message: expect.stringMatching(message) },
  })
