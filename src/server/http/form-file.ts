import { ignore } from '../../lib/async/ignore.ts'
import { badRequest } from '../../lib/errors/api-error.ts'
import { joined } from '../../lib/http/body.ts'

/** Most bytes of a form beside its file: other fields, and the heads of its parts. */
const maxFormBytes = 64 << 10
/** The longest boundary (RFC 2046, 5.1.1). */
const maxBoundaryLength = 70
const crlf = '\r\n'
const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

/**
 * The request with the first file of its form as the body (multipart/form-data, RFC 7578), as browsers and `curl -F` send files; any
 * other request as it is. 400 for a form without a file, and for a body that ends within the form.
 */
export async function withFormFile(request: Request): Promise<Request> {
  const type = request.headers.get('content-type') ?? ''
  if (request.body === null || !/^multipart\/form-data\s*(;|$)/i.test(type)) return request
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  const boundary = quoted ?? plain ?? ''
  if (boundary === '' || boundary.length > maxBoundaryLength)
    throw badRequest('Content-Type: multipart/form-data needs a boundary of 1 to 70 characters')
  const form = new Form(request.body, `${crlf}--${boundary}`)
  await form.findFile()
  const headers = new Headers(request.headers)
  // They describe the form.
  for (const name of ['content-type', 'content-length', 'transfer-encoding', 'content-md5']) headers.delete(name)
  const { method, signal, url } = request
  return new Request(url, { method, headers, signal, body: form.file(), ...{ duplex: 'half' } })
}

/** A form that is read as it arrives. */
class Form {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>
  readonly #delimiter: Uint8Array<ArrayBuffer>
  /** What was read and not used yet. The first delimiter has no line before it. */
  #rest = bytesOf(crlf)

  constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>, delimiter: string) {
    this.#reader = body.getReader()
    this.#delimiter = bytesOf(delimiter)
  }

  /** Reads up to the first byte of the first file. */
  async findFile(): Promise<void> {
    let room = maxFormBytes
    for (;;) {
      const part = await this.#upTo(this.#delimiter, room)
      const head = await this.#upTo(bytesOf(crlf + crlf), room - part.byteLength, bytesOf('--'))
      if (head === undefined) return this.#refuse('body: the form has no file: send one, such as curl -F file=@lab.zip')
      room -= part.byteLength + head.byteLength
      if (/^content-disposition:.*;\s*filename\*?=/im.test(new TextDecoder().decode(head))) return
    }
  }

  /** The bytes up to the next delimiter. */
  file(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      pull: async (controller) => {
        for (;;) {
          const end = indexOf(this.#rest, this.#delimiter)
          const sure = end < 0 ? this.#rest.byteLength - this.#delimiter.byteLength + 1 : end
          if (sure > 0) controller.enqueue(this.#rest.subarray(0, sure))
          if (end >= 0) {
            await this.#leaveRest()
            return controller.close()
          }
          this.#rest = this.#rest.subarray(Math.max(0, sure))
          await this.#more()
          if (sure > 0) return
        }
      },
      cancel: (reason) => this.#reader.cancel(reason),
    })
  }

  /** The bytes up to a mark, which is left out; undefined where `end` comes instead. */
  async #upTo(mark: Uint8Array, most: number): Promise<Uint8Array>
  async #upTo(mark: Uint8Array, most: number, end: Uint8Array): Promise<Uint8Array | undefined>
  async #upTo(mark: Uint8Array, most: number, end?: Uint8Array): Promise<Uint8Array | undefined> {
    for (;;) {
      if (end !== undefined && indexOf(this.#rest.subarray(0, end.byteLength), end) === 0) return undefined
      const at = indexOf(this.#rest, mark)
      if (at > most || (at < 0 && this.#rest.byteLength > most))
        return this.#refuse(`body: the form has more than ${maxFormBytes} bytes before its file; send the file first`)
      if (at >= 0) {
        const before = this.#rest.subarray(0, at)
        this.#rest = this.#rest.subarray(at + mark.byteLength)
        return before
      }
      await this.#more()
    }
  }

  /** Reads a further piece of the body. */
  async #more(): Promise<void> {
    const { done, value } = await this.#reader.read()
    if (done) throw badRequest('body: the form ends before its last boundary')
    this.#rest =
      this.#rest.byteLength === 0 ? value : joined([this.#rest, value], this.#rest.byteLength + value.byteLength)
  }

  /** Reads the fields after the file, so that the client can send them. */
  async #leaveRest(): Promise<void> {
    for (let read = 0; read <= maxFormBytes; ) {
      const { done, value } = await this.#reader.read()
      if (done) return
      read += value.byteLength
    }
    await this.#reader.cancel().catch(ignore('nothing of it is used'))
  }

  async #refuse(message: string): Promise<never> {
    await this.#reader.cancel().catch(ignore('the body is refused'))
    throw badRequest(message)
  }
}

function indexOf(bytes: Uint8Array, mark: Uint8Array): number {
  const [first = 0] = mark
  const last = bytes.byteLength - mark.byteLength
  for (let at = bytes.indexOf(first); at >= 0 && at <= last; at = bytes.indexOf(first, at + 1))
    if (isAt(bytes, mark, at)) return at
  return -1
}

function isAt(bytes: Uint8Array, mark: Uint8Array, at: number): boolean {
  for (let offset = 0; offset < mark.byteLength; offset++) if (bytes[at + offset] !== mark[offset]) return false
  return true
}
