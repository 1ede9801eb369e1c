import type { IncomingMessage, ServerResponse } from 'node:http'

/** Bodies up to this size are taken to their end, so that the connection can be kept, bytes. */
const smallBytes = 64 * 1024
/** How long the rest of a body is waited for, and dropped, that was answered before it came: the answer must not be lost, ms. */
const lingerMs = 5000

/**
 * The body of a request as a web stream. Cancelling it only ends the reading: the answer is still to be sent on the connection.
 * (Readable.toWeb would destroy the connection, and throws what it gets after that where nothing can catch it.)
 * `begin` runs when the body is first wanted.
 */
export function bodyStream(req: IncomingMessage, begin: () => void = () => {}): ReadableStream<Uint8Array> {
  let isBegun = false
  let stop = () => {}
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const onData = (piece: Uint8Array) => {
          req.pause()
          controller.enqueue(piece)
        }
        const onEnd = () => {
          stop()
          controller.close()
        }
        const onError = (error: Error) => {
          stop()
          controller.error(error)
        }
        const onClose = () => onError(new Error('The connection was closed before the end of the body'))
        stop = () => {
          req.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
          req.on('error', ignore)
        }
        req.pause()
        req.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
        // Listening for data does not begin to read, once paused.
        if (req.destroyed) onClose()
      },
      pull() {
        if (!isBegun) begin()
        isBegun = true
        req.resume()
      },
      cancel: () => stop(),
    },
    { highWaterMark: 0 },
  )
}

const ignore = () => {}

/**
 * Has an answer that is sent before a large body has come say `Connection: close`, and arrive: the connection is ended when the
 * client has closed its side, or after a bounded time, and what still comes of the body is dropped until then. To close at once
 * would have the system discard an answer that the client has not read. After the answer to a small body the connection is kept, and ended
 * when the body does not come within that time.
 */
export function lingerWhenEarly(req: IncomingMessage, res: ServerResponse): void {
  const announced = Number(req.headers['content-length'] ?? Number.NaN)
  const isChunked = req.headers['transfer-encoding'] !== undefined
  if (!isChunked && !(announced > smallBytes)) {
    // A body that does not come is not waited for.
    res.once('finish', () => {
      if (!req.complete) setTimeout(() => !req.complete && req.socket?.destroy(), lingerMs).unref()
    })
    return
  }
  const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => ServerResponse
  res.writeHead = ((...args: unknown[]) => {
    if (req.complete) return writeHead(...args)
    res.shouldKeepAlive = false
    const { socket } = req
    const destroySoon = socket.destroySoon.bind(socket)
    // Node calls this when the last answer of a connection was written.
    socket.destroySoon = () => {
      socket.end()
      const timer = setTimeout(() => socket.destroy(), lingerMs)
      socket.once('close', () => clearTimeout(timer))
      req.once('end', destroySoon)
      req.resume()
    }
    return writeHead(...args)
  }) as ServerResponse['writeHead']
}
