/**
 * Why a call of `Patchbay` failed: the error of the service, or of the connection to it. `code` is for programs: one of those in
 * `docs/errors.md`, or of `lostCodes`.
 */
export class PatchbayError extends Error {
  override readonly name = 'PatchbayError'
  /** The status of the answer; 0: there was none. */
  readonly status: number
  readonly code: string
  /** The whole answer: an error may have more members than `message` and `status`. */
  readonly answer: Readonly<Record<string, unknown>>

  constructor(
    message: string,
    {
      status,
      code,
      answer = {},
      cause,
    }: { status: number; code: string; answer?: Readonly<Record<string, unknown>>; cause?: unknown },
  ) {
    super(message, { cause })
    this.status = status
    this.code = code
    this.answer = answer
  }
}

/** The codes of errors without a response of a service. */
export const lostCodes = {
  unreachable: 'No connection could be made',
  lost: 'The connection was lost, or timed out, before the response was complete',
  'not-patchbay': 'The server is not Patchbay',
} as const
