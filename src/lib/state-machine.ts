/** What an event does to something that is in one of several states. */
interface Transition<State extends string> {
  readonly from: readonly State[]
  /** `before`: the state from which the present one came. */
  readonly to: State | 'before'
  readonly when: string
}

/** All transitions of something, by what causes them. docs/architecture.md shows each table. */
export type Transitions<State extends string, Event extends string> = Readonly<Record<Event, Transition<State>>>

/** The state of one thing, which changes by the table of its transitions only. */
export class StateMachine<State extends string, Event extends string> {
  readonly #what: string
  readonly #transitions: Transitions<State, Event>
  #state: State
  #before: State

  /** `what`: names it in the message of a defect. */
  constructor(what: string, transitions: Transitions<State, Event>, state: State) {
    this.#what = what
    this.#transitions = transitions
    this.#state = state
    this.#before = state
  }

  get state(): State {
    return this.#state
  }

  can(event: Event): boolean {
    return this.#transitions[event].from.includes(this.#state)
  }

  /** Throws when the state has no such transition: that is a defect. */
  move(event: Event): void {
    if (!this.can(event)) throw new Error(`${this.#what} that is ${this.#state} has no transition "${event}"`)
    const { to } = this.#transitions[event]
    const next = to === 'before' ? this.#before : to
    this.#before = this.#state
    this.#state = next
  }
}
