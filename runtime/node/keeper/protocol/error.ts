import type { KeeperErrorCode } from './protocol.ts'

/** An error that the keeper answers with. The code goes over the wire. */
export class KeeperError extends Error {
  override readonly name = 'KeeperError'
  readonly code: KeeperErrorCode

  constructor(code: KeeperErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
