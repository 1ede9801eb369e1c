import { StateMachine, type Transitions } from '../lib/state-machine.ts'

/** What becomes of a lab. Clients see a lab as opened while it is open, closing, or being deleted after it was open. */
type LabState = 'closed' | 'opening' | 'open' | 'closing' | 'moving' | 'deleting' | 'deleted'

/** All transitions of a lab, by what causes them; docs/architecture.md shows them. */
export const labTransitions = {
  open: { from: ['closed'], to: 'opening', when: 'a client opens or makes it, or the service starts' },
  ready: { from: ['opening'], to: 'open', when: 'its projects are open on its computes' },
  fail: { from: ['opening'], to: 'closed', when: 'a compute refuses; all close their projects again' },
  close: { from: ['open'], to: 'closing', when: 'a client closes it, or it is to be moved' },
  end: { from: ['closing'], to: 'closed', when: 'its projects are closed, which stops its nodes' },
  move: { from: ['closed'], to: 'moving', when: 'its compute is drained' },
  settle: { from: ['moving'], to: 'closed', when: 'it is on the other compute, or stays; it may open again' },
  delete: { from: ['closed', 'open'], to: 'deleting', when: 'a client or its ttl deletes it' },
  gone: { from: ['deleting'], to: 'deleted', when: 'its projects and its document are removed' },
  refuse: { from: ['closing', 'deleting'], to: 'before', when: 'a compute, or the disk, refuses' },
} as const satisfies Transitions<LabState, string>

export type LabTransition = keyof typeof labTransitions

/**
 * The state of each lab. Who changes one has locked the lab (`LabAccess`). While a lab is open, closing, or being deleted after it was open,
 * `LabDocuments` has it, and it `isOpen`; an object that was closed or deleted `isOver`, and the next opening makes another one. `is_open` of
 * its record is what the next start of the service is to make of it.
 */
export class LabStates {
  /** Of labs that are neither closed nor deleted. */
  readonly #machines = new Map<string, StateMachine<LabState, LabTransition>>()

  of(id: string): LabState {
    return this.#machines.get(id)?.state ?? 'closed'
  }

  /** Throws when the state has no such transition: that is a defect. */
  move(id: string, event: LabTransition): void {
    const machine = this.#machines.get(id) ?? new StateMachine('A project', labTransitions, 'closed')
    machine.move(event)
    if (machine.state === 'closed' || machine.state === 'deleted') this.#machines.delete(id)
    else this.#machines.set(id, machine)
  }

  /** Makes the transition `event`. Unless another one has followed when the result is disposed, `onFailure` does. */
  during(id: string, { event, onFailure }: { event: LabTransition; onFailure: LabTransition }): Disposable {
    this.move(id, event)
    const begun = this.of(id)
    return { [Symbol.dispose]: () => void (this.of(id) === begun && this.move(id, onFailure)) }
  }
}
