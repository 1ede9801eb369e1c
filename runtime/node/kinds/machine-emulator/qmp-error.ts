/**
 * `unreachable`: nobody answers on the socket; `timeout`: somebody is there and says nothing; `refused`: the emulator
 * answered with an error; `closed`: the emulator ended, or the client was closed; `protocol`: what came is not QMP.
 */
export type QmpErrorCode = 'unreachable' | 'timeout' | 'refused' | 'closed' | 'protocol'

/** A monitor command that was not done, or a monitor that cannot be used. */
export class QmpError extends Error {
  override readonly name = 'QmpError'
  readonly code: QmpErrorCode
  /** The emulator's own word for what it refused, such as `DeviceNotFound`. */
  readonly qmpClass: string | undefined

  constructor(code: QmpErrorCode, message: string, options: ErrorOptions & { qmpClass?: string } = {}) {
    super(message, options)
    this.code = code
    this.qmpClass = options.qmpClass
  }
}
