import { StateMachine, type Transitions } from '../../../../src/lib/state-machine.ts'
import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'

/** What a node does. A node that starts, stops or is unknown shows the last of the other three to clients. */
export type NodeState = NodeStatus | 'starting' | 'stopping' | 'unknown'

/** All transitions of a node, by what causes them; docs/architecture.md shows them. Without a transition, the node stays as it is. */
export const nodeTransitions = {
  start: { from: ['stopped'], to: 'starting', when: 'a client starts it, or it always runs' },
  run: { from: ['starting'], to: 'started', when: 'its program runs, and its guest is under control' },
  fail: { from: ['starting'], to: 'stopped', when: 'one of both fails; status_reason says why' },
  suspend: { from: ['started'], to: 'suspended', when: 'a client pauses it, or the guest pauses itself' },
  resume: { from: ['suspended'], to: 'started', when: 'a client resumes it, or the guest goes on' },
  stop: { from: ['started', 'suspended', 'unknown'], to: 'stopping', when: 'a client stops it, or its project closes' },
  refuse: { from: ['stopping'], to: 'before', when: 'the guest, or the keeper, does not end it' },
  end: { from: ['started', 'suspended', 'stopping'], to: 'stopped', when: 'its program has ended, or its keeper died' },
  adopt: { from: ['stopped'], to: 'started', when: 'its project is opened, and it runs or ran' },
  becomeUnknown: {
    from: ['stopped', 'started'],
    to: 'unknown',
    when: 'its project is opened while the keeper is silent',
  },
  becomeKnown: { from: ['unknown'], to: 'stopped', when: 'the keeper answers; adopt or nothing follows' },
} as const satisfies Transitions<NodeState, string>

export type NodeEvent = keyof typeof nodeTransitions

/** The state of one node. */
export class NodeStateMachine extends StateMachine<NodeState, NodeEvent> {
  #status: NodeStatus = 'stopped'

  constructor() {
    super('A node', nodeTransitions, 'stopped')
  }

  /** What clients see of the state. */
  get status(): NodeStatus {
    return this.#status
  }

  override move(event: NodeEvent): void {
    super.move(event)
    const { state } = this
    if (state === 'stopped' || state === 'started' || state === 'suspended') this.#status = state
  }
}
