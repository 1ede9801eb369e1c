import { ignore } from '../../lib/async/ignore.ts'
import { isUpgrade } from '../../lib/http/socket.ts'
import { type LateHead, lateHeader, lateType } from '../../model/late-answer.ts'

/** Proxies end what is silent for 60 s (nginx), 100 s or 120 s (Cloudflare). */
const defaultSilenceMs = 30_000
const space = new TextEncoder().encode(' ')

export interface LateOptions {
  /** A waiting sender gets a byte at least this often, ms. */
  readonly silenceMs?: number | undefined
  /** Whether the whole request has come. An early answer would tell a sender to stop sending. Called more than once. */
  readonly isReceived?: () => boolean
}

/**
 * The answer; or, when it takes long and the request announces support, a late answer as `model/late-answer` describes it. The
 * signal of the request still aborts when the sender leaves.
 */
export function withKeepAlive(
  request: Request,
  answer: Promise<Response>,
  { silenceMs = defaultSilenceMs, isReceived = () => true }: LateOptions = {},
): Promise<Response> {
  const isSupported = request.headers.has(lateHeader) && request.method !== 'HEAD' && !isUpgrade(request)
  if (!isSupported) return answer
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      if (!isReceived()) return
      clearInterval(timer)
      resolve(lateAnswer(answer, silenceMs))
    }, silenceMs)
    answer.finally(() => clearInterval(timer)).then(resolve, reject)
  })
}

function lateAnswer(answer: Promise<Response>, silenceMs: number): Response {
  let timer: ReturnType<typeof setInterval> | undefined
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // The sender does not read: it gets no more bytes.
      const sendSpace = () => void ((controller.desiredSize ?? 0) > 0 && controller.enqueue(space))
      sendSpace()
      timer = setInterval(sendSpace, silenceMs)
    },
    async pull(controller) {
      if (reader === undefined) {
        const response = await answer.finally(() => clearInterval(timer))
        if (isCancelled) return
        controller.enqueue(headOf(response))
        reader = response.body?.getReader()
        if (reader === undefined) controller.close()
        return
      }
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel(reason) {
      isCancelled = true
      clearInterval(timer)
      if (reader !== undefined) return reader.cancel(reason)
      answer.then((it) => it.body?.cancel(reason)).catch(ignore('the client has left'))
    },
  })
  const headers = {
    'Content-Type': lateType,
    'Cache-Control': 'no-store, no-transform',
    // nginx buffers answers otherwise.
    'X-Accel-Buffering': 'no',
  }
  return new Response(body, { headers })
}

function headOf({ status, headers }: Response): Uint8Array {
  const head: LateHead = { status, headers: [...headers] }
  return new TextEncoder().encode(`${JSON.stringify(head)}\n`)
}
