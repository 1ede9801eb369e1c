import { ignore } from '../async/ignore.ts'
import { ApiError } from '../errors/api-error.ts'
import type { ConsoleStream, NodeAgent } from '../host-agent.ts'
import type { NodeRef } from '../kinds/node.ts'
import type { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import { nodePath } from './nodes.ts'
import { SocketStream } from './socket-stream.ts'
import type { OpenSocket } from './transport.ts'

const paths = { console: 'console/ws', screen: 'console/vnc' } as const

/** Consoles and screens, over websockets. */
export function remoteConsoles(
  connection: Connection,
  openSocket: OpenSocket = noSocket,
): Pick<NodeAgent, 'console' | 'screen'> {
  const open = async (what: keyof typeof paths, ref: NodeRef, signal: AbortSignal): Promise<ConsoleStream> => {
    const exchange = new Exchange(signal)
    exchange.within(connection.limits.workMs)
    try {
      const path = `${nodePath(ref)}/${paths[what]}`
      const opening = openSocket({ path, headers: {}, signal: exchange.signal })
      opening.then(
        (late) => exchange.ending !== undefined && !(late instanceof Response) && late.close(),
        ignore('who waits for it is told'),
      )
      const socket = await exchange.until(opening)
      if (socket instanceof Response) throw await connection.refusal(socket, exchange)
      return new SocketStream(socket, {
        signal,
        maxWaiting: connection.limits.consoleBytes,
        idleMs: connection.limits.idleMs,
        failed: (words) => connection.failed(`${what} ${words}`),
      })
    } catch (error) {
      throw connection.lost(error, exchange)
    } finally {
      // From now on it is closed, so that what was sent still arrives, and not broken off.
      exchange.release()
    }
  }
  return {
    console: (ref, signal) => open('console', ref, signal),
    screen: (ref, signal) => open('screen', ref, signal),
  }
}

const noSocket: OpenSocket = () => Promise.reject(new ApiError(501, 'No websockets can be opened to computes here'))
