import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { reasonOf } from '../../os/system/error-reason.ts'

/** Errors of missing resources, which say nothing about the port. */
const shortages: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])

/** 409 when the port could not be tested. All other errors mean that it cannot be bound. */
function requireTested(port: number, error: unknown): void {
  if (!shortages.has((error as NodeJS.ErrnoException).code)) return
  throw conflict(`Port ${port} cannot be tested: ${reasonOf(error)}`, { cause: error as Error })
}

/** Whether a TCP port can be bound on the wildcard address of both families and on `host`; 409 when that cannot be tested. */
export async function isTcpFree(port: number, host: string): Promise<boolean> {
  // A dual-stack wildcard collides with a listener on any address of either family.
  return (await canListen(port, undefined)) && (await canListen(port, host))
}

async function canListen(port: number, host: string | undefined): Promise<boolean> {
  const server = createServer()
  try {
    const listening = once(server, 'listening')
    server.listen({ port, ...(host !== undefined && { host }), exclusive: true })
    await listening
    await new Promise((resolve) => server.close(resolve))
    return true
  } catch (error) {
    requireTested(port, error)
    return false
  }
}

/** Whether a UDP port can be bound on the wildcard address; 409 when that cannot be tested. */
export async function isUdpFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ port, exclusive: true }, resolve)
    })
    return true
  } catch (error) {
    requireTested(port, error)
    return false
  } finally {
    await new Promise<void>((resolve) => socket.close(() => resolve()))
  }
}
