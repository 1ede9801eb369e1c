import { once } from 'node:events'
import { createConnection, type NetConnectOpts, type Socket } from 'node:net'

/** Connects to a TCP port or a UNIX socket. Rejects with the error of connect(2), or with ETIMEDOUT after `ms`. */
export async function connectSocket(address: NetConnectOpts, ms: number): Promise<Socket> {
  const socket = createConnection(address)
  const late = Object.assign(new Error(`no connection within ${ms} ms`), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => socket.destroy(late), ms)
  try {
    await once(socket, 'connect')
    return socket
  } finally {
    clearTimeout(timer)
  }
}
