/** The data of the QMP event BLOCK_IO_ERROR. */
export interface BlockIoError {
  readonly device: string
  readonly operation: 'read' | 'write'
  /** `stop`: the guest is paused until it is resumed. */
  readonly action: 'ignore' | 'report' | 'stop'
  /** Whether the disk of the host is full. */
  readonly nospace?: boolean
  readonly reason: string
}

/** The disk errors of a running machine. */
export class DiskComplaints {
  /** Why a disk error paused the machine. */
  blocked: string | undefined
  readonly #reported = new Set<string>()

  /** A message for the user; undefined for a repeated error, because a guest may retry thousands of times. */
  add({ device, operation, action, nospace, reason }: BlockIoError): string | undefined {
    const why = nospace === true ? 'the disk of the host is full' : reason
    const what = `${device.replace(/^pb-/, '')} cannot be ${operation === 'read' ? 'read' : 'written'}: ${why}`
    const isPaused = action === 'stop'
    const isNews = isPaused ? this.blocked === undefined : !this.#reported.has(what)
    this.#reported.add(what)
    if (isPaused) this.blocked ??= `${what}; make room, then resume the node`
    return isNews ? `${what}${isPaused ? '; the machine is paused' : ''}` : undefined
  }
}
