import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { decodeError, type EncodedError, encodeError } from './rpc-error.ts'
import { decode, type Encoded, encode } from './rpc-json.ts'

/** The result of a call between objects. Errors are values here: of a thrown error only the message would arrive. */
export type ObjectReply<T = void> = { readonly value: Encoded<T> | undefined } | { readonly fault: EncodedError }

export async function replyOf<T>(work: () => Promise<T>): Promise<ObjectReply<T>> {
  try {
    const value = await work()
    return { value: value === undefined ? undefined : encode(value) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { fault: encodeError(error) }
  }
}

/** The result in an `ObjectReply`; throws its error. */
export async function resultOf<T>(reply: Promise<ObjectReply<T>>): Promise<T> {
  const answer = await reply
  if ('fault' in answer) throw decodeError(answer.fault)
  // Nothing is sent for `undefined`, which `T` includes then.
  return answer.value === undefined ? (undefined as T) : decode(answer.value)
}
