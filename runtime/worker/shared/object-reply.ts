import { ApiError } from '../../../src/lib/errors/api-error.ts'
import type { ErrorCode } from '../../../src/lib/errors/words.ts'

interface Fault {
  readonly status: number
  readonly message: string
  readonly word: ErrorCode
  readonly headers: Record<string, string>
}

/** The result of a call between objects, as JSON. Errors are values here: of a thrown error only the message would arrive. */
export type ObjectReply = { readonly value: string | undefined } | { readonly fault: Fault }

export async function replyOf(work: () => Promise<unknown>): Promise<ObjectReply> {
  try {
    return { value: JSON.stringify(await work()) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { status, message, code: word, headers } = error
    return { fault: { status, message, word, headers: { ...headers } } }
  }
}

/** The result in an `ObjectReply`; throws its error. */
export async function resultOf<T>(reply: Promise<ObjectReply>): Promise<T> {
  const answer = await reply
  if ('fault' in answer) {
    const { status, message, word: code, headers } = answer.fault
    throw new ApiError(status, message, { code, headers })
  }
  return (answer.value === undefined ? undefined : JSON.parse(answer.value)) as T
}
