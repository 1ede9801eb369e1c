/**
 * Why a call of `Patchbay` failed: the error of the service, or of the connection to it. `word` is for programs: one of those in
 * `docs/errors.md`, or of `lostWords`.
 */
export class PatchbayError extends Error {
  override readonly name = 'PatchbayError'
  /** The status of the answer; 0: there was none. */
  readonly status: number
  readonly word: string
  /** The whole answer: an error may have more members than `message` and `status`. */
  readonly answer: Readonly<Record<string, unknown>>

  constructor(
    message: string,
    {
      status,
      word,
      answer = {},
      cause,
    }: { status: number; word: string; answer?: Readonly<Record<string, unknown>>; cause?: unknown },
  ) {
    super(message, { cause })
    this.status = status
    this.word = word
    this.answer = answer
  }
}

/** The codes of errors without a response of a service. */
export const lostWords = {
  unreachable: 'No connection could be made',
  lost: 'The connection was lost, or timed out, before the response was complete',
  'not-patchbay': 'The server is not Patchbay',
} as const
