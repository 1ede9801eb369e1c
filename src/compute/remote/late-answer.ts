import { Check } from '@sinclair/typebox/value'
import { abortable } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { LateHead, lateHeader, lateType } from '../../model/late-answer.ts'
import { announcedSize } from './announced-size.ts'
import { causeOf } from './answer.ts'
import { bodiless, type ComputeAnswer, ConnectionLost, type Outgoing, type Send } from './transport.ts'

/** Largest head of an answer, bytes. */
const maxHeadBytes = 64 * 1024
/** A compute sends a byte at least every 30 s before a late answer, ms. */
const silenceMs = 120_000
const space = 0x20
const newline = 0x0a
const nothing = new Uint8Array()

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** The received data do not have the form of a late answer. */
class Malformed extends Error {}

/**
 * Wraps `send` for late answers (see `model/late-answer`) of the compute `name`, and resolves with the final answer. Rejects with ConnectionLost when the
 * head does not arrive, or no data for `silenceMs`; 502 for a malformed answer.
 */
export const awaitingLate =
  (send: Send, name: string, headersOf: HeadersOf = (headers) => ({ ...headers })): Send =>
  (request) => {
    const { method, path, body, signal } = request
    const headers = headersOf(request.headers)
    if (method === 'HEAD') return send({ ...request, headers })
    headers[lateHeader] = '1'
    return send({ method, path, headers, body, signal }).then((answer) =>
      isLate(answer) ? final(answer, signal, name) : answer,
    )
  }

/** The headers that are sent for those of a request, as a new object. */
type HeadersOf = (headers: Outgoing['headers']) => Record<string, string>

/** The answer that comes in the body of a late one. */
async function final(answer: ComputeAnswer, signal: AbortSignal, name: string): Promise<ComputeAnswer> {
  if (answer.body === null) return answer
  const reader = answer.body.getReader()
  try {
    const { line, rest } = await abortable(readLine(reader), signal)
    return answerOf(headOf(line), reader, rest)
  } catch (error) {
    reader.cancel().catch(ignore('the connection has failed, or is not wanted any more'))
    if (signal.aborted) throw signal.reason
    if (!(error instanceof Malformed)) throw new ConnectionLost(causeOf(error), { cause: error })
    const message = `The compute ${name} sent a malformed answer: ${error.message}`
    throw new ApiError(502, message, { cause: error })
  }
}

const isLate = ({ status, headers }: ComputeAnswer): boolean =>
  status === 200 && isLateType.test(headers.get('content-type') ?? '')
const isLateType = new RegExp(`^\\s*${lateType.replaceAll('.', '\\.')}\\s*(;|$)`, 'i')

/** The first line after the spaces, and the part of the body in the same chunk. */
async function readLine(reader: Reader): Promise<{ line: string; rest: Uint8Array }> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = ''
  let size = 0
  for (;;) {
    const { done, value } = await readInTime(reader)
    if (done) throw new Error('the connection ended without an answer')
    const begin = size > 0 ? 0 : value.findIndex((byte) => byte !== space)
    if (begin < 0) continue
    const end = value.indexOf(newline, begin)
    const piece = value.subarray(begin, end < 0 ? undefined : end)
    size += piece.length
    if (size > maxHeadBytes) throw new Malformed(`the head of a late answer has more than ${maxHeadBytes} bytes`)
    try {
      line += decoder.decode(piece, { stream: end < 0 })
    } catch (cause) {
      throw new Malformed('the head of a late answer is not text', { cause })
    }
    if (end >= 0) return { line, rest: value.subarray(end + 1) }
  }
}

const readInTime = (reader: Reader): Promise<ReadableStreamReadResult<Uint8Array>> =>
  withTimeout(reader.read(), silenceMs, () => {
    throw new Error(`no data arrived for ${silenceMs / 1000} s`)
  })

function headOf(line: string): LateHead {
  try {
    const head: unknown = JSON.parse(line)
    if (Check(LateHead, head)) return head
  } catch (cause) {
    throw new Malformed('the head of a late answer is not JSON', { cause })
  }
  throw new Malformed('the head of a late answer has no status and headers')
}

function answerOf(head: LateHead, reader: Reader, rest: Uint8Array): Response {
  const { status } = head
  const headers = headersOf(head)
  const size = sizeOf(headers)
  if (!bodiless.has(status)) return new Response(bodyOf(reader, rest, size), { status, headers })
  // A cancel would close the connection, which can be reused.
  reader
    .read()
    .then(
      ({ done }) =>
        void (done || reader.cancel().catch(ignore('the connection has failed, or is not wanted any more'))),
      ignore('an answer without a body is complete'),
    )
  return new Response(null, { status, headers })
}

/** The body; an error unless its size is the announced size: surplus bytes would answer another request. */
function bodyOf(reader: Reader, rest: Uint8Array, size: number | undefined): ReadableStream<Uint8Array> {
  let left = size ?? Number.POSITIVE_INFINITY
  let next: Uint8Array | undefined = rest
  return new ReadableStream(
    {
      async pull(controller) {
        while (next?.length === 0) next = (await reader.read()).value
        left -= next?.length ?? 0
        if (left < 0 || (next === undefined && size !== undefined && left > 0)) {
          reader.cancel().catch(ignore('the connection has failed, or is not wanted any more'))
          throw new Error(`${size} bytes were announced`)
        }
        if (next === undefined) return controller.close()
        controller.enqueue(next)
        next = nothing
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // The stream has a buffer already.
    { highWaterMark: 0 },
  )
}

function headersOf({ headers }: LateHead): Headers {
  try {
    return new Headers(headers)
  } catch (cause) {
    throw new Malformed('a header of a late answer is malformed', { cause })
  }
}

/** The announced size, bytes; undefined without one. */
function sizeOf(headers: Headers): number | undefined {
  try {
    return announcedSize(headers)
  } catch (cause) {
    throw new Malformed('the length of a late answer is not a number', { cause })
  }
}
