import { expect, test } from 'vitest'
import { Unreachable } from '../../../../src/compute/remote/unreachable.ts'
import { withComputeContext } from '../../../../src/fleet/members/member-errors.ts'

test.for([
  ['The compute c2 is not connected: connect ECONNREFUSED 127.0.0.1:3193'],
  ['The compute c2 cannot be used: connect ECONNREFUSED 127.0.0.1:3193'],
  ['The compute c2 cannot be reached: connect ECONNREFUSED 127.0.0.1:3193'],
  ['connect ECONNREFUSED 127.0.0.1:3193'],
])('a client reads once that a compute is not connected, and why: %s', ([message]) => {
  expect(withComputeContext(new Unreachable(409, message as string), { name: 'c2' })).toMatchObject({
    status: 503,
    code: 'compute-unreachable',
    message: 'The compute c2 is not connected: connect ECONNREFUSED 127.0.0.1:3193',
  })
})
