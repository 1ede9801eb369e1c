/**
 * `unreachable`: nobody answers on the port; `timeout`: somebody is there and says nothing; `refused`: dynamips answered
 * with an error; `closed`: dynamips ended, or the client was closed; `aborted`: whoever asked went away; `protocol`: what
 * came is not the protocol, or what was to be said cannot be said in it.
 */
export type HypervisorErrorCode = 'unreachable' | 'timeout' | 'refused' | 'closed' | 'aborted' | 'protocol'

/** A command that was not done, or a dynamips that cannot be used. */
export class HypervisorError extends Error {
  override readonly name = 'HypervisorError'
  readonly code: HypervisorErrorCode
  /** Dynamips' own number for what it refused, such as 208 (unknown object). */
  readonly reply: number | undefined

  constructor(code: HypervisorErrorCode, message: string, options: ErrorOptions & { reply?: number } = {}) {
    super(message, options)
    this.code = code
    this.reply = options.reply
  }
}
