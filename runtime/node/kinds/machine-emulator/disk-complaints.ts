import type { BlockIoError } from './qmp.ts'

/** What the disks of a machine that runs have complained of. */
export class DiskComplaints {
  /** Why the machine stands still, when a disk made it. */
  blocked: string | undefined
  readonly #told = new Set<string>()

  /** The news for the user; undefined when it is none: a guest may try thousands of times. */
  hear({ device, operation, action, nospace, reason }: BlockIoError): string | undefined {
    const why = nospace === true ? 'the disk of the host is full' : reason
    const what = `${device.replace(/^pb-/, '')} cannot be ${operation === 'read' ? 'read' : 'written'}: ${why}`
    const isPaused = action === 'stop'
    const isNews = isPaused ? this.blocked === undefined : !this.#told.has(what)
    this.#told.add(what)
    if (isPaused) this.blocked ??= `${what}; make room, then resume the node`
    return isNews ? `${what}${isPaused ? '; the machine is paused' : ''}` : undefined
  }
}
