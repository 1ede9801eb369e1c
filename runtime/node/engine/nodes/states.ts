import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'

/** What a node does. A node that starts, stops or is unknown shows the last of the other three to clients. */
export type NodeState = NodeStatus | 'starting' | 'stopping' | 'unknown'

interface Transition {
  readonly from: readonly NodeState[]
  /** `before`: the state from which the node came. */
  readonly to: NodeState | 'before'
  readonly when: string
}

/** All transitions of a node, by what causes them; docs/architecture.md shows them. Without a transition, the node stays as it is. */
export const transitions = {
  start: { from: ['stopped'], to: 'starting', when: 'a client starts it, or it always runs' },
  run: { from: ['starting'], to: 'started', when: 'its program runs, and its guest is under control' },
  fail: { from: ['starting'], to: 'stopped', when: 'one of both fails; status_reason says why' },
  suspend: { from: ['started'], to: 'suspended', when: 'a client pauses it, or the guest pauses itself' },
  resume: { from: ['suspended'], to: 'started', when: 'a client resumes it, or the guest goes on' },
  stop: { from: ['started', 'suspended', 'unknown'], to: 'stopping', when: 'a client stops it, or its project closes' },
  refuse: { from: ['stopping'], to: 'before', when: 'the guest, or the keeper, does not end it' },
  end: { from: ['started', 'suspended', 'stopping'], to: 'stopped', when: 'its program has ended, or its keeper died' },
  find: { from: ['stopped'], to: 'started', when: 'its project is opened, and it runs or ran' },
  lose: { from: ['stopped', 'started'], to: 'unknown', when: 'its project is opened while the keeper is silent' },
  answer: { from: ['unknown'], to: 'stopped', when: 'the keeper answers; find or nothing follows' },
} as const satisfies Readonly<Record<string, Transition>>

export type NodeEvent = keyof typeof transitions

const isSettled = (state: NodeState): state is NodeStatus =>
  state === 'stopped' || state === 'started' || state === 'suspended'

/** The state of one node. */
export class StateMachine {
  #state: NodeState = 'stopped'
  #before: NodeState = 'stopped'
  #status: NodeStatus = 'stopped'

  get state(): NodeState {
    return this.#state
  }

  /** What clients see of the state. */
  get status(): NodeStatus {
    return this.#status
  }

  can(event: NodeEvent): boolean {
    const { from }: Transition = transitions[event]
    return from.includes(this.#state)
  }

  /** Throws when the state has no such transition: that is a defect. */
  move(event: NodeEvent): void {
    if (!this.can(event)) throw new Error(`A node that is ${this.#state} has no transition "${event}"`)
    const { to }: Transition = transitions[event]
    const next = to === 'before' ? this.#before : to
    this.#before = this.#state
    this.#state = next
    if (isSettled(next)) this.#status = next
  }
}
