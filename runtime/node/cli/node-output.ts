import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { ConsoleText, consoleText } from '../../../src/lib/text/console-text.ts'
import { lineAnswer } from '../../../src/model/console.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { executing, nodeLogging } from './command-flags.ts'
import { consoleLost, consoleOf, requireConsole } from './console.ts'
import { countOf } from './counts.ts'
import { secondsOf } from './durations.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { type NodeTarget, nodeOf } from './targets.ts'

/** `patchbay exec LAB/NODE COMMAND`: types a line on the console of a node, and shows what it answers. */
export async function exec({
  args: [word = '', ...words],
  flags,
  signal,
}: CommandInput<typeof executing>): Promise<CommandOutcome> {
  const line = words.join(' ')
  const client = await clientOf(flags, { WebSocket })
  const target = requireConsole(await nodeOf(word, { client, signal }))
  const within_s = secondsOf('--within', flags.within, lineAnswer.withinS)
  const { lab, node } = target
  const params = { project_id: node.project_id, node_id: node.node_id }
  if (flags.expect !== undefined) {
    const body = { send: `${line}\r`, expect: flags.expect, echoes: flags['no-echo'] !== true, within_s }
    const timeoutMs = (within_s + 30) * 1000
    const call = client.call('POST /v2/projects/{project_id}/nodes/{node_id}/console/expect', {
      params,
      body,
      signal,
      timeoutMs,
    })
    const match = await call.catch((error) => {
      if (!(error instanceof PatchbayError)) throw error
      if (error.status === 400 && error.message.startsWith('expect: ')) throw wrongArguments(`--${error.message}`)
      if (error.code !== 'not-in-time') throw error
      throw new CommandError(exits.failed, `${lab}/${node.name}: ${error.message}`)
    })
    return {
      json: { lab, node: node.name, ...match },
      isVerbatim: true,
      text: () => plain(match.before + match.matched),
    }
  }
  const stream = await consoleOf(target, client, { replay: false, signal })
  let output = ''
  const decoder = new TextDecoder()
  const over = new AbortController()
  // Without `--expect`, a guest that is quiet has answered: a ping prints a line each second.
  const quiet = setTimeout(() => over.abort(), lineAnswer.quietMs)
  stream.on('data', (bytes: Buffer) => {
    output += decoder.decode(bytes, { stream: true })
    quiet.refresh()
  })
  const loss = lossOf(stream)
  stream.on('close', () => over.abort())
  stream.write(`${line}\r`)
  await sleep(within_s * 1000, undefined, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => undefined)
  clearTimeout(quiet)
  stream.destroy()
  signal.throwIfAborted()
  loss.throwIfAny(target)
  return { json: { lab, node: node.name, output: plain(output) }, isVerbatim: true, text: () => plain(output) }
}

/** `patchbay logs LAB/NODE [-f]`: the last lines of the console of a node. */
export async function logs({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof nodeLogging>): Promise<number | CommandOutcome> {
  const lines = String(countOf(flags))
  const client = await clientOf(flags, { WebSocket })
  const target = await nodeOf(word, { client, signal })
  const { node } = target
  const params = { project_id: node.project_id, node_id: node.node_id }
  // The log and what comes after it by one connection: between two, output would be lost.
  if (flags.follow && node.status === 'started') {
    const stream = await consoleOf(target, client, { lines: Number(lines), signal })
    return followed(stream, target, signal)
  }
  const body = await client.stream('GET /v2/projects/{project_id}/nodes/{node_id}/console/log', {
    params,
    query: { lines },
    signal,
  })
  if (flags.json) {
    const lines = plain(await new Response(body).text()).split('\n')
    return { json: { lab: target.lab, node: node.name, lines }, text: () => lines.join('\n') }
  }
  const text = new ConsoleText()
  let last: string | undefined
  for await (const bytes of body) last = writeText(text.push(bytes)) ?? last
  endLine(last)
  if (flags.follow) requireConsole(target)
  return exits.done
}

/** Returns the last character. */
function writeText(text: string): string | undefined {
  process.stdout.write(text)
  return text.at(-1)
}

/** The prompt of the node is not to be before that of the shell. */
function endLine(last: string | undefined): void {
  if (last !== undefined && last !== '\n') process.stdout.write('\n')
}

/** Shows a console until it ends, or Ctrl-C. */
async function followed(stream: Duplex, target: NodeTarget, signal: AbortSignal): Promise<number> {
  signal.addEventListener('abort', () => stream.destroy(), { once: true })
  const text = new ConsoleText()
  let last: string | undefined
  stream.on('data', (bytes: Buffer) => {
    last = writeText(text.push(bytes)) ?? last
  })
  const loss = lossOf(stream)
  await new Promise((resolve) => stream.once('close', resolve))
  endLine(last)
  if (signal.aborted) return exits.interrupted
  loss.throwIfAny(target)
  return exits.done
}

/** Notes what ends a console, other than its node: `throwIfAny` then throws CommandError 5. */
function lossOf(stream: Duplex): { throwIfAny(target: NodeTarget): void } {
  let fault: Error | undefined
  stream.on('error', (error) => {
    fault = error
  })
  return {
    throwIfAny({ lab, node }) {
      if (fault !== undefined) throw consoleLost(`${lab}/${node.name}`, fault)
    },
  }
}

/** The same without blanks at its ends. */
const plain = (output: string): string => consoleText(output).trim()
