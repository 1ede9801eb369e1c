import { ignore } from '../../lib/async/ignore.ts'
import { answerBudget, type Reservation } from '../../lib/http/answer-budget.ts'
import { notInLine } from '../../lib/text/one-line.ts'
import type { ComputeAnswer } from './transport.ts'

/** The text of a body; undefined for one of more than `most` bytes, or not in UTF-8. 503 when the budget of answers is used up. */
export async function readText(
  response: ComputeAnswer,
  most: number,
  budget = answerBudget,
): Promise<string | undefined> {
  const { whole } = response
  if (whole !== undefined) return whole.byteLength > most ? undefined : decoded(strictDecoder(), whole, false)
  if (response.body === null) return ''
  const announced = Number(response.headers.get('content-length') ?? most)
  const reader = response.body.getReader()
  let reservation: Reservation | undefined
  try {
    if (announced > most) return undefined
    const decoder = strictDecoder()
    let text = ''
    let size = 0
    for (;;) {
      const { done, value } = await reader.read()
      size += value?.byteLength ?? 0
      if (size > most) return undefined
      if (reservation === undefined && budget.isDue(size)) reservation = await budget.reserve(most)
      reservation?.touch()
      const piece = decoded(decoder, value, !done)
      if (piece === undefined) return undefined
      text += piece
      if (done) return text
    }
  } finally {
    reservation?.release()
    reader.cancel().catch(ignore('a body that was read to its end cannot be cancelled'))
  }
}

/** The JSON of a body; undefined for another body, and for a longer one. */
export const readJson = async (response: ComputeAnswer, most: number): Promise<unknown> =>
  jsonIn((await readText(response, most)) ?? '')

/** The JSON of a text; undefined for other text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const unsafe = new RegExp(`[${notInLine}]+`, 'g')

/** A text of another program for our messages: one line of at most 300 characters. */
export function quoteText(text: string): string {
  const line = text.replace(unsafe, ' ').trim()
  return line.length > 300 ? `${line.slice(0, 297)}...` : line
}

/** The message of the innermost cause: that of `fetch` only says that it failed. */
export function causeOf(error: unknown): string {
  const { message, cause, errors } = error as Error & { errors?: readonly unknown[] }
  const inner = errors?.[0] ?? cause
  return inner instanceof Error ? causeOf(inner) : quoteText(message)
}

const strictDecoder = () => new TextDecoder('utf-8', { fatal: true })

/** Undefined for bytes that are not UTF-8. `stream`: more bytes follow; the last call reports an incomplete character. */
function decoded(decoder: TextDecoder, bytes: Uint8Array | undefined, stream: boolean): string | undefined {
  try {
    return decoder.decode(bytes, { stream })
  } catch {
    return undefined
  }
}
