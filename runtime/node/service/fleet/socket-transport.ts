import type { ClientRequest } from 'node:http'
import { WebSocket } from 'ws'
import { originOf } from '../../../../src/compute/remote/address.ts'
import { ConnectionLost, type SocketTransport } from '../../../../src/compute/remote/transport.ts'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { wrap } from '../http/websocket.ts'
import { WireAnswer, watchConnection } from '../http/wire-request.ts'
import { targetOf } from './http-transport.ts'
import { ownHeader } from './own-requests.ts'

/** A console that is read slowly comes in large messages. */
const largestMessage = 16 << 20

/** Websockets to computes: with headers, and with the reason of a refusal, which the WebSocket of a browser has not. */
export const socketTransport: SocketTransport = (address) => {
  const { lookup } = targetOf(address)
  return ({ path, headers, signal }) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      let isReached = () => false
      const socket = new WebSocket(originOf(address) + path, {
        headers: { ...headers, [ownHeader[0]]: ownHeader[1] },
        lookup,
        perMessageDeflate: false,
        maxPayload: largestMessage,
        finishRequest(request: ClientRequest) {
          isReached = watchConnection(request, address.protocol)
          request.end()
        },
      })
      const fail = (error: Error) => {
        if (signal.aborted) reject(signal.reason)
        else reject(isReached() ? new ConnectionLost(error.message, { cause: error }) : error)
      }
      const settled = onAbort(signal, () => socket.terminate())
      socket.once('close', settled)
      socket.once('open', () => {
        // Messages that come before the listeners are added would be lost.
        socket.pause()
        resolve(wrap(socket))
      })
      socket.once('unexpected-response', (_, message) => {
        message.once('close', settled)
        try {
          resolve(new WireAnswer(message, 'GET'))
        } catch (error) {
          fail(error as Error)
          socket.terminate()
        }
      })
      // The listener stays: errors of an open socket are reported by its close.
      socket.on('error', fail)
    })
}
