import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, vi } from 'vitest'
import { netioDirectory } from '../../runtime/node/dataplane/fast/netio-directory.ts'
import type { NetioPort } from '../../runtime/node/keeper/protocol/protocol.ts'
import { hangMs } from './limits.ts'
import type { Namespace } from './namespace.ts'
import { python3 } from './python.ts'

export const headerBytes = 8

/** A port of an instance, as the switch takes it. */
export const netio = (application_id: number, port: number, ethernet = true): NetioPort => ({
  application_id,
  port,
  ethernet,
})

/** Where the switch has its socket for an instance, as the bridge of it. */
export const bridgePath = (id: number): string => `${netioDirectory()}/${id + 512}`

/** A header: ids big endian, ports, type, channel. */
export function header(to: number, from: number, port: number, type = 1, channel = 0, sourcePort = port): Buffer {
  const bytes = Buffer.from([0, 0, 0, 0, port, sourcePort, type, channel])
  bytes.writeUInt16BE(to, 0)
  bytes.writeUInt16BE(from, 2)
  return bytes
}

export interface IouInstance {
  readonly id: number
  /** Datagrams that came and were not asked for yet. */
  readonly got: Buffer[]
  /** Resolves when so many datagrams wait. */
  holds(count: number): Promise<Buffer[]>
  /** The next datagram. */
  next(): Promise<Buffer>
  /** Sends a frame from a port to the same one of the bridge. */
  send(port: number, frame: string | Buffer): void
  sendRaw(datagram: Buffer): void
  /** Has it read no more, until `go`. */
  stop(): void
  go(): void
  end(): Promise<void>
}

/** Starts what speaks as an IOU instance does; it ends with the test. In `host`, more datagrams may wait at its socket. */
export async function iouInstance(id: number, host?: Namespace): Promise<IouInstance> {
  // As an instance that starts before its bridge makes it.
  mkdirSync(netioDirectory(), { recursive: true, mode: 0o700 })
  const program = fileURLToPath(new URL('./netio.py', import.meta.url))
  const command = [python3, program, netioDirectory(), String(id), String(id + 512)]
  const roomy = 'echo 4000 > /proc/sys/net/unix/max_dgram_qlen && exec "$@"'
  const prefix = host === undefined ? [] : ['ip', 'netns', 'exec', host.name, 'sh', '-c', roomy, 'sh']
  const [first = '', ...rest] = [...prefix, ...command]
  const child = spawn(first, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const end = async () => {
    child.stdin.end()
    await exited
  }
  onTestFinished(end)
  const got: Buffer[] = []
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  lines.on('line', (line) => got.push(Buffer.from(line, 'hex')))
  const holds = (count: number) =>
    vi.waitFor(
      () => {
        expect(got.length).toBeGreaterThanOrEqual(count)
        return got
      },
      { timeout: hangMs, interval: 2 },
    )
  const write = (line: string) => void child.stdin.write(`${line}\n`)
  const sendRaw = (datagram: Buffer) => write(datagram.toString('hex'))
  return {
    id,
    got,
    holds,
    next: async () => (await holds(1)).shift() as Buffer,
    send: (port, frame) => sendRaw(Buffer.concat([header(id + 512, id, port), Buffer.from(frame)])),
    sendRaw,
    stop: () => write('stop'),
    go: () => write('go'),
    end,
  }
}
