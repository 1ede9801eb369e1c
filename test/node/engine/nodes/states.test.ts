import { expect, test } from 'vitest'
import { type NodeEvent, NodeStateMachine, nodeTransitions } from '../../../../runtime/node/engine/nodes/states.ts'

const events = Object.keys(nodeTransitions) as NodeEvent[]

function after(...moves: NodeEvent[]): NodeStateMachine {
  const machine = new NodeStateMachine()
  for (const event of moves) machine.move(event)
  return machine
}

test.each([
  { moves: [], state: 'stopped', status: 'stopped' },
  { moves: ['start'], state: 'starting', status: 'stopped' },
  { moves: ['start', 'fail'], state: 'stopped', status: 'stopped' },
  { moves: ['start', 'run'], state: 'started', status: 'started' },
  { moves: ['start', 'run', 'suspend'], state: 'suspended', status: 'suspended' },
  { moves: ['adopt', 'stop'], state: 'stopping', status: 'started' },
  { moves: ['adopt', 'suspend', 'stop'], state: 'stopping', status: 'suspended' },
  { moves: ['adopt', 'suspend', 'stop', 'refuse'], state: 'suspended', status: 'suspended' },
  { moves: ['adopt', 'stop', 'end'], state: 'stopped', status: 'stopped' },
  { moves: ['adopt', 'becomeUnknown'], state: 'unknown', status: 'started' },
  { moves: ['adopt', 'becomeUnknown', 'stop', 'refuse'], state: 'unknown', status: 'started' },
  { moves: ['becomeUnknown', 'becomeKnown', 'adopt'], state: 'started', status: 'started' },
] as const)('after $moves a node is $state, which clients see as $status', ({ moves, state, status }) => {
  const machine = after(...moves)
  expect({ state: machine.state, status: machine.status }).toEqual({ state, status })
})

test('a node does not move without a transition', () => {
  const machine = after('adopt')
  expect(events.filter((event) => machine.can(event))).toEqual(['suspend', 'stop', 'end', 'becomeUnknown'])
  expect(() => machine.move('start')).toThrow('A node that is started has no transition "start"')
  expect(machine.state).toBe('started')
})
