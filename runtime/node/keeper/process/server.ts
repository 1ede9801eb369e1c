import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { Check } from '@sinclair/typebox/value'
import { formatIssue } from '../../../../src/model/validation/validate.ts'
import type { SwitchGuest } from '../../dataplane/switch/guests.ts'
import type { Switch } from '../../dataplane/switch/switch.ts'
import { LineReader } from '../../os/system/line-reader.ts'
import { socketPath } from '../../os/system/socket-path.ts'
import { KeeperError } from '../protocol/error.ts'
import {
  type KeeperEvents,
  type Operations,
  operationInputs,
  type PortGuest,
  protocolVersion,
  type StreamOperation,
  streamOperations,
} from '../protocol/protocol.ts'
import type { Units } from './units.ts'

type Answer<Op extends keyof Operations> = Promise<Operations[Op]['out']> | Operations[Op]['out']
type Handlers = { readonly [Op in keyof Operations]?: (input: Operations[Op]['in']) => Answer<Op> }

type Request = { readonly id: number | null; readonly op: unknown; readonly with: unknown }

const longestLine = 4 << 20

export interface KeeperServerOptions {
  readonly runDirectory: string
  readonly version: string
  readonly units: Units
  readonly switch: Switch
  /** Called with the number of connected services when it changes. */
  readonly onServices: (count: number) => void
  readonly shutdown: (graceMs: number) => Promise<void>
}

/** The server of the keeper's socket. */
export class KeeperServer {
  readonly #server: Server
  readonly #options: KeeperServerOptions
  readonly #handlers: Handlers
  readonly #services = new Set<Socket>()
  #isEnding = false

  constructor(options: KeeperServerOptions) {
    this.#options = options
    this.#server = createServer((socket) => this.#accept(socket))
    const { units, switch: lan } = options
    this.#handlers = {
      ping: () => ({}),
      inventory: () => ({ units: units.list(), ports: lan.list(), links: lan.links() }),
      'unit.start': (spec) => units.start(spec),
      'unit.stop': ({ key, grace_ms }) => units.stop(key, grace_ms),
      'unit.limit': async ({ key, cpu_percent }) => nothing(await units.limit(key, cpu_percent)),
      'unit.hold': async ({ key, is_held }) => nothing(await units.hold(key, is_held)),
      'unit.configure': async ({ key, run }) => nothing(await units.configure(key, run)),
      'bridge.table': async ({ key }) => ({ entries: await lan.entries(units.requireRunning(key)) }),
      'bridge.clear': async ({ key }) => nothing(await lan.clear(units.requireRunning(key))),
      'unit.exec': async ({ key, words, within_ms }) => ({ code: await units.inside(key).run(words, within_ms) }),
      'unit.forget': ({ key }) => nothing(units.forget(key)),
      'console.listen': async ({ key, listen }) => nothing(await units.hub(key).setListen(listen)),
      'console.log': ({ key }) => ({ text: units.consoleLog(key).toString('base64') }),
      'console.resize': ({ key, terminal, ...size }) => nothing(units.resize(key, size, terminal)),
      'port.open': ({ key, ...guest }) => lan.open(key, guestOf(lan, key, guest)),
      'port.close': async ({ key }) => nothing(await lan.close(key)),
      'netio.tidy': async ({ application_id }) => nothing(await lan.tidy(application_id)),
      'nio.attach': async ({ key, nio }) => nothing(await lan.attach(key, nio)),
      'nio.detach': async ({ key }) => nothing(await lan.detach(key)),
      'link.join': async ({ links }) => nothing(await lan.joinAll(links)),
      'link.remove': async ({ links }) => nothing(await lan.separate(links)),
      'port.report': async ({ key, fresh, keys }) => ({ ports: await lan.report(key ?? keys, fresh) }),
      'capture.start': async ({ key, file, link_type, floor_mb }) =>
        nothing(await lan.exclusively(key, () => lan.captured(key).start(file, link_type, floor_mb))),
      'capture.stop': async ({ key }) => nothing(await lan.exclusively(key, () => lan.captured(key).stop())),
      shutdown: async ({ grace_ms }) => nothing(await options.shutdown(grace_ms)),
    }
  }

  /** Rejects when another keeper has the directory. */
  async listen(): Promise<void> {
    const { path, release } = socketPath(this.#options.runDirectory)
    try {
      // This keeper holds the lock of the directory, so an existing socket belonged to a killed keeper.
      rmSync(path, { force: true })
      const listening = once(this.#server, 'listening')
      // The socket is made during the call. It must never have the mode of others, not even until a chmod.
      const umask = process.umask(0o177)
      try {
        this.#server.listen(path)
      } finally {
        process.umask(umask)
      }
      await listening
    } finally {
      release()
    }
  }

  emit<E extends keyof KeeperEvents>(event: E, what: KeeperEvents[E]): void {
    const line = `${JSON.stringify({ event, with: what })}\n`
    for (const service of this.#services) service.write(line)
  }

  /** Removes the socket and takes no more services; those that are connected stay. */
  refuse(): void {
    this.#isEnding = true
    this.#server.close()
  }

  close(): void {
    this.refuse()
    for (const service of this.#services) service.end()
  }

  #accept(socket: Socket): void {
    const lines = new LineReader(longestLine)
    const read = (bytes: Buffer) => {
      try {
        for (const line of lines.push(bytes)) {
          const request = requestOf(JSON.parse(line))
          if (isStream(request.op)) {
            socket.off('data', read)
            void this.#attach(socket, request, lines)
            return
          }
          if (request.op === 'hello' && this.#isEnding) return void socket.destroy()
          void this.#answer(socket, request)
        }
      } catch {
        socket.destroy()
      }
    }
    socket.on('data', read)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      if (this.#services.delete(socket)) this.#options.onServices(this.#services.size)
    })
  }

  async #answer(socket: Socket, { id, op, with: input }: Request): Promise<void> {
    let answer: unknown
    try {
      answer = { id, result: op === 'hello' ? this.#hello(socket, input) : await this.#run(op, input) }
    } catch (error) {
      const code = error instanceof KeeperError ? error.code : 'internal'
      answer = { id, error: { code, message: (error as Error).message } }
    }
    if (socket.writable) socket.write(`${JSON.stringify(answer)}\n`)
  }

  /** Accepts a service of any version; the service decides which operations it uses. */
  #hello(socket: Socket, input: unknown): Operations['hello']['out'] {
    checked('hello', input)
    this.#services.add(socket)
    this.#options.onServices(this.#services.size)
    const { version, switch: lan } = this.#options
    return { protocol: protocolVersion, version, pid: process.pid, packet_path: lan.pathName }
  }

  #run(op: unknown, input: unknown): Promise<unknown> | unknown {
    const name = Object.keys(operationInputs).find((it) => it === op) as keyof Operations | undefined
    const handler = name && (this.#handlers[name] as ((input: unknown) => unknown) | undefined)
    if (name === undefined || handler === undefined)
      throw new KeeperError('bad_request', `unknown operation ${String(JSON.stringify(op)).slice(0, 100)}`)
    return handler(checked(name, input))
  }

  /** Turns the connection into a stream of the console or the capture. */
  async #attach(socket: Socket, { id, op, with: input }: Request, lines: LineReader): Promise<void> {
    const { units, switch: lan } = this.#options
    const begin = () => socket.write(`${JSON.stringify({ id, result: {} })}\n`)
    try {
      if (op === 'console.attach') {
        const { key, replay, lines: shown } = checked('console.attach', input)
        const hub = units.hub(key)
        begin()
        hub.attach(socket, { replay, lines: shown })
        if (lines.rest.length > 0) socket.emit('data', lines.rest)
        return
      }
      if (op === 'console.run') {
        const { key, words, terminal: name } = checked('console.run', input)
        const terminal = await units.inside(key).terminal(words, name)
        begin()
        join(socket, terminal)
        if (lines.rest.length > 0) terminal.write(lines.rest)
        return
      }
      const wanted = checked('capture.attach', input)
      const recorder = lan.captured(wanted.key)
      if (wanted.from === 'file') recorder.follow(socket, begin)
      else await recorder.stream(socket, wanted.link_type, begin, wanted.losses)
      // Reads and discards input, so that the end of the connection is noticed.
      socket.resume()
    } catch (error) {
      const code = error instanceof KeeperError ? error.code : 'internal'
      socket.end(`${JSON.stringify({ id, error: { code, message: (error as Error).message } })}\n`)
    }
  }
}

const isStream = (op: unknown): op is StreamOperation => streamOperations.some((it) => it === op)

/** Joins a client with a terminal of its own: each ends with the other. */
function join(socket: Socket, terminal: ReadStream): void {
  const writable = terminal as unknown as Duplex
  socket.once('close', () => terminal.destroy())
  terminal.once('close', () => socket.end())
  if (socket.destroyed) terminal.destroy()
  terminal.pipe(socket, { end: false })
  socket.pipe(writable, { end: false })
}

function guestOf(lan: Switch, key: string, guest: PortGuest): SwitchGuest {
  if ('netio' in guest) return guest.netio
  if ('tap' in guest) return guest
  if ('bridge_port' in guest) return lan.bridgePort(key.split('/')[0] ?? '', guest.bridge_port)
  return guest.is_serial === true ? { serial_port: guest.guest_port } : guest.guest_port
}

/** The validated input of an operation; `bad_request` names the wrong member. */
function checked<Op extends keyof Operations>(op: Op, input: unknown): Operations[Op]['in'] {
  if (Check(operationInputs[op], input)) return input as Operations[Op]['in']
  throw new KeeperError('bad_request', `${op}: ${formatIssue(operationInputs[op], input, 'with')}`)
}

/** Throws for an invalid request; the connection is then closed. */
function requestOf(line: unknown): Request {
  if (typeof line !== 'object' || line === null || Array.isArray(line)) throw new Error('not a request')
  const { id, op, with: input } = line as Record<string, unknown>
  return { id: typeof id === 'number' ? id : null, op, with: input }
}

const nothing = (_: unknown): Record<string, never> => ({})
