import { ApiError } from '../../../src/lib/errors/api-error.ts'
import type { ErrorCode } from '../../../src/lib/errors/words.ts'
import { decode, type Encoded, encode } from './rpc-json.ts'

interface Fault {
  readonly status: number
  readonly message: string
  readonly word: ErrorCode
  readonly headers: Record<string, string>
}

/** The result of a call between objects. Errors are values here: of a thrown error only the message would arrive. */
export type ObjectReply<T = void> = { readonly value: Encoded<T> | undefined } | { readonly fault: Fault }

export async function replyOf<T>(work: () => Promise<T>): Promise<ObjectReply<T>> {
  try {
    const value = await work()
    return { value: value === undefined ? undefined : encode(value) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { status, message, code: word, headers } = error
    return { fault: { status, message, word, headers: { ...headers } } }
  }
}

/** The result in an `ObjectReply`; throws its error. */
export async function resultOf<T>(reply: Promise<ObjectReply<T>>): Promise<T> {
  const answer = await reply
  if ('fault' in answer) {
    const { status, message, word: code, headers } = answer.fault
    throw new ApiError(status, message, { code, headers })
  }
  // Nothing is sent for `undefined`, which `T` includes then.
  return answer.value === undefined ? (undefined as T) : decode(answer.value)
}
