import { ignore } from '../async/ignore.ts'
import { answerBudget, type Reservation } from '../http/answer-budget.ts'
import type { ComputeAnswer } from './transport.ts'

/**
 * The text of a body; undefined when it is longer than that many bytes, or is no UTF-8. 503 when too much is being read of other
 * answers at the same time.
 */
export async function readText(
  response: ComputeAnswer,
  most: number,
  budget = answerBudget,
): Promise<string | undefined> {
  const { whole } = response
  if (whole !== undefined) return whole.byteLength > most ? undefined : decodedWhole(whole)
  if (response.body === null) return ''
  const announced = Number(response.headers.get('content-length') ?? most)
  const reader = response.body.getReader()
  let reservation: Reservation | undefined
  try {
    if (announced > most) return undefined
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let text = ''
    let size = 0
    for (;;) {
      const { done, value } = await reader.read()
      size += value?.byteLength ?? 0
      if (size > most) return undefined
      if (reservation === undefined && budget.isDue(size)) reservation = await budget.reserve(most)
      reservation?.touch()
      const piece = decoded(decoder, value)
      if (piece === undefined) return undefined
      text += piece
      if (done) return text
    }
  } finally {
    reservation?.release()
    reader.cancel().catch(ignore('nothing happens to a body that was read to its end'))
  }
}

/** The JSON of a body; undefined when it is none, or is too long. */
export async function readJson(response: ComputeAnswer, most: number): Promise<unknown> {
  try {
    return JSON.parse((await readText(response, most)) ?? '')
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** What another program said, as it may be repeated: one line, not too long. */
export function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not get through
  const line = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim()
  return line.length > 300 ? `${line.slice(0, 297)}...` : line
}

/** What is inside says more: fetch only says that it failed, and attempts at several addresses say nothing at all. */
export function causeOf(error: unknown): string {
  const { message, cause, errors } = error as Error & { errors?: readonly unknown[] }
  const inner = errors?.[0] ?? cause
  return inner instanceof Error ? causeOf(inner) : quoteText(message)
}

function decodedWhole(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Pieces are joined by the decoder; its last call, without any, says whether the text was whole. */
function decoded(decoder: TextDecoder, bytes: Uint8Array | undefined): string | undefined {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}
