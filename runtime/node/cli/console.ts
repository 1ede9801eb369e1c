import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { connect } from 'node:net'
import { Duplex, Transform } from 'node:stream'
import { WebSocket } from 'ws'
import type { Patchbay } from '../../../src/client/patchbay.ts'
import { TerminalSizes } from '../../../src/client/terminal-sizes.ts'
import { randomHex } from '../../../src/lib/crypto/secret.ts'
import { lineAnswer } from '../../../src/model/console.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { TelnetStripper } from '../os/system/telnet.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { consoling } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import { type NodeTarget, nodeOf } from './targets.ts'

const connectMs = 5000

/** `patchbay console LAB/NODE` or `[HOST:]PORT`: a raw terminal on a console. Piped, it sends its input and shows the output. */
export async function consoleCommand({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof consoling>): Promise<number> {
  const leaveKey = escapeOf(flags.escape)
  const telnet = /^(?:\[?([^\]/]+?)\]?:)?(\d{1,5})$/.exec(word)
  const log = flags.log === undefined ? undefined : await openLog(flags.log)
  try {
    if (telnet !== null) {
      const [, host = '127.0.0.1', port] = telnet
      return await terminalOn(await telnetTo(host, Number(port)), { name: `${host}:${port}`, leaveKey, log, signal })
    }
    const client = await clientOf(flags, { WebSocket })
    const target = await nodeOf(word, { client, signal })
    const name = `${target.lab}/${target.node.name}`
    if (flags.telnet && flags.name !== undefined) throw wrongArguments('--name and --telnet exclude each other')
    const options = { name, leaveKey, log, signal }
    if (flags.telnet) return await terminalOn(await telnetOf(target), options)
    const further = flags.name === undefined ? {} : { name: flags.name, terminal: randomHex(8) }
    const stream = await consoleOf(target, client, { signal, ...further })
    const left = new AbortController()
    passSizes(target, client, { terminal: further.terminal, signal: AbortSignal.any([signal, left.signal]) })
    try {
      return await terminalOn(stream, options)
    } finally {
      left.abort()
    }
  } finally {
    log?.end()
  }
}

/** Has a console take the size of the terminal of this process, if it has one, until `signal` aborts. */
function passSizes(
  { node: { project_id, node_id } }: NodeTarget,
  client: Patchbay,
  { terminal, signal }: { readonly terminal: string | undefined; readonly signal: AbortSignal },
): void {
  const { stdout } = process
  if (!stdout.isTTY) return
  const sizes = new TerminalSizes()
  sizes.show(async (size) => {
    const [params, body] = [{ project_id, node_id }, JSON.stringify({ ...size, terminal })]
    // Consoles of most nodes have no size.
    await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/console/size', { params, body, signal })
    return true
  })
  const set = () => sizes.set(stdout.columns, stdout.rows)
  stdout.on('resize', set)
  signal.addEventListener('abort', () => {
    stdout.off('resize', set)
    sizes.show(undefined)
  })
  set()
}

/** The console of a node by a websocket, also through a gateway. CommandError 1 when it has none now. */
export async function consoleOf(
  target: NodeTarget,
  client: Patchbay,
  { signal, ...shown }: { replay?: boolean; lines?: number; name?: string; terminal?: string; signal: AbortSignal },
): Promise<Duplex> {
  const { lab, node } = shown.name === undefined ? requireConsole(target) : target
  const streams = await client
    .console({ project: node.project_id, node: node.node_id }, { ...shown, signal })
    .catch((error) => {
      throw new CommandError(
        exits.failed,
        `the console of ${lab}/${node.name} cannot be opened: ${(error as Error).message}`,
      )
    })
  return Duplex.fromWeb(streams as Parameters<typeof Duplex.fromWeb>[0])
}

/** The target, if its console has text, and runs. CommandError 1. */
export function requireConsole(target: NodeTarget): NodeTarget {
  const { lab, node } = target
  const name = `${lab}/${node.name}`
  if (node.status !== 'started')
    throw new CommandError(exits.failed, [
      { message: `${name} is ${node.status}`, hint: `"patchbay start ${name}" starts it` },
    ])
  if (node.console_type !== 'telnet' && node.console_type !== 'none' && node.console_type !== 'null')
    throw new CommandError(
      exits.failed,
      `${name} has a ${node.console_type} console on port ${node.console}; a terminal cannot show it`,
    )
  if (node.console_type !== 'telnet') throw new CommandError(exits.failed, `${name} has no console`)
  return target
}

function telnetOf(target: NodeTarget): Promise<Duplex> {
  const { node } = requireConsole(target)
  return telnetTo(node.console_host ?? '127.0.0.1', node.console ?? 0)
}

/** A telnet console as bytes. CommandError 64 for a wrong port, 1 when nothing answers. */
async function telnetTo(host: string, port: number): Promise<Duplex> {
  if (port === 0 || port > 65_535)
    throw wrongArguments(`expected LAB/NODE or the port of a console ([HOST:]PORT), got the port ${port}`)
  const socket = connect({ host, port, timeout: connectMs })
  try {
    socket.once('timeout', () => socket.destroy(new Error('connection timed out')))
    await once(socket, 'connect')
  } catch (error) {
    throw new CommandError(exits.failed, [
      {
        message: `${host}:${port} does not answer: ${reasonOf(error)}`,
        hint: 'is the node started, and is the port its "console"? "patchbay inspect LAB" shows both',
      },
    ])
  }
  socket.setTimeout(0)
  const stripper = new TelnetStripper()
  // UTF-8 text has no byte 255 (IAC), so no byte must be sent twice (RFC 854).
  return Duplex.from({
    writable: socket,
    readable: socket.pipe(new Transform({ transform: (bytes: Buffer, _, done) => done(null, stripper.strip(bytes)) })),
  })
}

interface TerminalOptions {
  readonly name: string
  /** The byte that leaves the console. */
  readonly leaveKey: number | undefined
  readonly log: WriteStream | undefined
  readonly signal: AbortSignal
}

/** Connects the terminal, or the pipe, of this process. Resolves with the exit code when the console ends, or the user leaves it. */
async function terminalOn(stream: Duplex, { name, leaveKey, log, signal }: TerminalOptions): Promise<number> {
  const { stdin, stdout, stderr } = process
  const isTerminal = stdin.isTTY === true
  if (isTerminal) {
    stdin.setRawMode(true)
    const leave = leaveKey === undefined ? '' : `; ${nameOf(leaveKey)} leaves`
    stderr.write(`Connected to ${name}${leave}.\r\n`)
  }
  let fault: Error | undefined
  stream.on('error', (error) => {
    fault = error
  })
  stream.on('data', (bytes: Buffer) => {
    log?.write(bytes)
    if (!stdout.write(bytes)) {
      stream.pause()
      stdout.once('drain', () => stream.resume())
    }
  })
  stdin.on('data', (bytes: Buffer) => {
    const at = isTerminal && leaveKey !== undefined ? bytes.indexOf(leaveKey) : -1
    if (at === -1) {
      if (!stream.write(bytes)) {
        stdin.pause()
        stream.once('drain', () => stdin.resume())
      }
      return
    }
    if (at > 0) stream.write(bytes.subarray(0, at))
    stream.destroy()
  })
  // The guest may still answer after the end of piped input.
  stdin.on('end', () => {
    const quiet = setTimeout(() => stream.destroy(), lineAnswer.quietMs)
    stream.on('data', () => quiet.refresh())
    stream.on('close', () => clearTimeout(quiet))
  })
  signal.addEventListener('abort', () => stream.destroy(), { once: true })
  if (!stream.closed)
    await new Promise<void>((resolve) => stream.once('close', resolve).once('end', () => stream.destroy()))
  if (isTerminal) {
    stdin.setRawMode(false)
    stderr.write(`\r\nLeft ${name}.\n`)
  }
  if (fault !== undefined) throw consoleLost(name, fault)
  return signal.aborted ? exits.interrupted : exits.done
}

export const consoleLost = (name: string, { message }: Error): CommandError =>
  new CommandError(exits.noService, `lost the connection to the console of ${name}: ${message}`)

/** The byte of an escape character: one character, `^` and a letter for a control character, or `none`. */
function escapeOf(text: string | undefined): number | undefined {
  if (text === 'none') return undefined
  const [, letter] = /^\^([@-_a-z])$/.exec(text ?? '^]') ?? []
  if (letter !== undefined) return letter.toUpperCase().charCodeAt(0) ^ 0x40
  if (text?.length === 1 && text.charCodeAt(0) < 128) return text.charCodeAt(0)
  throw wrongArguments(`--escape: expected a character, such as ^] or ^A, or none; got ${JSON.stringify(text)}`)
}

const nameOf = (byte: number): string =>
  byte < 32 ? `Ctrl-${String.fromCharCode(byte ^ 0x40)}` : String.fromCharCode(byte)

async function openLog(path: string): Promise<WriteStream> {
  const log = createWriteStream(path, { flags: 'a' })
  await once(log, 'open').catch((error) => {
    throw new CommandError(exits.failed, `${path}: ${reasonOf(error)}`)
  })
  return log
}
