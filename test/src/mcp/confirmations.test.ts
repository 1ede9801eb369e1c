import { expect, test } from 'vitest'
import { numberFor, requireNumber } from '../../../src/mcp/confirmations.ts'
import { signingKey } from '../../../src/server/auth/signed-text.ts'

const change = {
  who: 'anna',
  tool: 'stop',
  arguments: { lab: 'a', nodes: ['R1'] },
  plan: { sentence: 'stop 1 node', data: { nodes: ['R1'] } },
}
const now = 1_800_000_000_000
const key = () => signingKey('a secret of sixteen', 'confirmations')

test('a number confirms its change for ten minutes, whatever the order of its members', async () => {
  const number = await numberFor(change, await key(), now)
  expect(number).toMatch(/^[0-9a-z]+-[0-9a-f]{20}-[0-9a-f]{20}$/)
  const same = { ...change, arguments: { nodes: ['R1'], lab: 'a' } }
  await requireNumber(number, same, await key(), now + 599_000)
  await expect(requireNumber(number, same, await key(), now + 601_000)).rejects.toThrow('older than 10 minutes')
})

test.for([
  ['another client', { ...change, who: 'bert' }, 'not given to you'],
  ['another tool', { ...change, tool: 'start' }, 'not given to you'],
  ['other arguments', { ...change, arguments: { lab: 'b', nodes: ['R1'] } }, 'not given to you'],
  ['another plan', { ...change, plan: { ...change.plan, data: {} } }, 'not what it was then'],
] as const)('a number does not confirm a change of %s', async ([, other, reason]) => {
  const number = await numberFor(change, await key(), now)
  await expect(requireNumber(number, other, await key(), now)).rejects.toThrow(reason)
})

test('what is no number, or has another key, confirms nothing', async () => {
  const number = await numberFor(change, await key())
  for (const wrong of ['', '1', number.slice(1), `${number}0`, '-'.repeat(100)])
    await expect(requireNumber(wrong, change, await key())).rejects.toThrow('not given to you')
  const other = await signingKey('another secret of 16', 'confirmations')
  await expect(requireNumber(number, change, other)).rejects.toThrow('not given to you')
})
