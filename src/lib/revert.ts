import { ignoreNotFound, mayHaveSucceeded } from './errors/api-error.ts'

type Step = () => unknown

/**
 * Reverts an operation that fails half-way. The operation begins with `await using revert = new Revert(onFailure)`, adds a step after
 * each thing that it has done, and ends with `commit`. Without `commit` the steps run when it is left, the last one first. The operation
 * rejects with its own error: `onFailure` gets the error of a step that fails, and the other steps run nevertheless.
 */
export class Revert implements AsyncDisposable {
  #steps: Step[] = []
  readonly #onFailure: (error: Error) => void

  constructor(onFailure: (error: Error) => void) {
    this.#onFailure = onFailure
  }

  add(step: Step): void {
    this.#steps.push(step)
  }

  /** Makes something that `step` removes. It is also removed when the answer is lost: it may be there. After a refusal it is not. */
  async make<T>(make: () => Promise<T>, step: Step): Promise<T> {
    try {
      const made = await make()
      this.add(step)
      return made
    } catch (error) {
      if (mayHaveSucceeded(error)) this.add(step)
      throw error
    }
  }

  /** The operation has succeeded: nothing is reverted. */
  commit(): void {
    this.#steps = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step()
      } catch (error) {
        this.#report(error)
      }
    }
  }

  #report(error: unknown): void {
    try {
      // What is gone already needs no removal.
      ignoreNotFound(error)
    } catch {
      this.#onFailure(error as Error)
    }
  }
}
