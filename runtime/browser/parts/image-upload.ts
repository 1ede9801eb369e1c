import { signal } from '@preact/signals'
import { pause } from '../../../src/lib/async/pause.ts'
import { send } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'

/** Bytes of a part: between two parts an upload can pause. */
const partBytes = 4 << 20
/** Time before a part is tried again, ms, and how often. */
const [retryMs, maxTries] = [1000, 5]
/** Refusals of a moment: too slow a body, too many requests (RFC 9110, 15.5.9; RFC 6585, 4). */
const passing = [408, 429]
/** Refusals after which another try can succeed: the user signs in, or the other upload of the image ends. */
const mendable = [401, 409]

/** An image on its way to the service, in parts. An interrupted one goes on from the bytes that the service has. */
export class ImageUpload {
  readonly name: string
  readonly total: number
  /** Bytes that the service has. */
  readonly stored = signal(0)
  /** `failed` may go on later; `refused`: another try would have the same result. */
  readonly state = signal<'running' | 'paused' | 'failed' | 'refused' | 'done'>('running')
  /** Why it failed, or cannot be used. */
  readonly reason = signal('')
  readonly #url: string
  readonly #file: File
  #over = new AbortController()

  constructor(kind: string, file: File) {
    this.name = file.name
    this.total = file.size
    this.#file = file
    this.#url = `/v2/compute/${kind}/images/${encodeURIComponent(file.name)}`
  }

  pause(): void {
    if (this.state.value !== 'running') return
    this.state.value = 'paused'
    this.#over.abort()
  }

  /** Sends what is missing, until it is done, paused, failed or refused. Never rejects. */
  async run(): Promise<void> {
    this.state.value = 'running'
    this.reason.value = ''
    this.#over = new AbortController()
    const { signal } = this.#over
    let tries = 0
    let isAsking = true
    while (!signal.aborted) {
      try {
        const isDone = await this.#send(isAsking, signal)
        isAsking = false
        tries = 0
        if (!isDone) continue
        this.state.value = 'done'
        return
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof Refusal || ++tries === maxTries) {
          this.state.value = error instanceof Refusal && !mendable.includes(error.status) ? 'refused' : 'failed'
          this.reason.value = messageOf(error)
          return
        }
        isAsking = true
        await pause(retryMs, signal)
      }
    }
  }

  /** Sends a part, or asks for the bytes that the service has. True: the image is stored. */
  async #send(isAsking: boolean, signal: AbortSignal): Promise<boolean> {
    const first = this.stored.value
    const last = Math.min(first + partBytes, this.total) - 1
    const isEmpty = this.total === 0
    const range = isAsking ? `bytes */${this.total}` : `bytes ${first}-${last}/${this.total}`
    const response = await send(this.#url, {
      method: 'POST',
      signal,
      headers: { 'content-type': 'application/octet-stream', ...(!isEmpty && { 'content-range': range }) },
      body: isAsking || isEmpty ? null : this.#file.slice(first, last + 1),
    })
    // RFC 9110, 15.4.9: without Location the browser follows nothing.
    if (response.status === 308) {
      const end = /^bytes=0-(\d+)$/.exec(response.headers.get('range') ?? '')?.[1]
      this.stored.value = end === undefined ? 0 : Number(end) + 1
      return false
    }
    if (response.ok) {
      this.stored.value = this.total
      return true
    }
    const { message = `The service answered ${response.status}` } = await response.json().catch(() => ({}))
    const { status } = response
    throw status < 500 && !passing.includes(status) ? new Refusal(message, status) : new Error(message)
  }
}

/** The service does not take the image now. */
class Refusal extends Error {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}
