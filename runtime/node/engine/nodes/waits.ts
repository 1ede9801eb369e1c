import { connect } from 'node:net'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { pause } from '../../../../src/lib/async/pause.ts'
import { badRequest, conflict, tooMany } from '../../../../src/lib/errors/api-error.ts'
import { escapeUnsafe } from '../../../../src/lib/text/escape.ts'
import type { ConsoleExpect, ConsoleMatch, NodeReady } from '../../../../src/model/console.ts'
import { commandGraceMs } from '../../keeper/protocol/protocol.ts'
import { EchoFilter } from './console-echo.ts'
import { ConsoleSearch, compiled } from './console-search.ts'
import type { Consoles } from './consoles.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { ReadyCommand } from './kind.ts'

/** Most waits at once. */
const maxWaits = 200
/** After a search, other requests get this many times its duration. */
const restShare = 4
/** Between two tries to connect, and timeout of one, ms. */
const retryMs = 250
const connectMs = 1000
/** Between two runs of a command, and what the answer of one may take beside its time, ms. */
const [execEveryMs, execAnswerMs] = [1000, commandGraceMs + 5000]
/** Characters of a command in a message. */
const maxShown = 200

/** Waits for the output of consoles, and for TCP ports. A client that goes ends its wait. */
export class NodeWaits {
  readonly #consoles: Consoles
  readonly #keeper: KeeperLink
  #waits = 0

  constructor(consoles: Consoles, keeper: KeeperLink) {
    this.#consoles = consoles
    this.#keeper = keeper
  }

  expect(node: EngineNode, wanted: ConsoleExpect, signal: AbortSignal): Promise<ConsoleMatch> {
    return this.#counted(signal, (over) => this.#search(node, wanted, over))
  }

  ready(
    node: EngineNode,
    { console, tcp, exec, seconds = 0, within_s = 60 }: NodeReady,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#counted(signal, async (over) => {
      requireRunning(node)
      const command = await node.kind.readyCommand?.(node, exec)
      if (exec !== undefined && command === undefined) throw conflict(`exec: ${node.record.name} runs no such commands`)
      await Promise.all([
        console !== undefined && this.#search(node, { expect: console, within_s }, over, 'console'),
        tcp !== undefined && accepts(node, tcp, within_s, over),
        command !== undefined && this.#succeeds(node, command, within_s, over),
        pause(seconds * 1000, over),
      ])
      over.throwIfAborted()
      requireRunning(node)
    })
  }

  /** Resolves when a command has succeeded in a node; 409. */
  async #succeeds(node: EngineNode, { words, ms }: ReadyCommand, withinS: number, over: AbortSignal): Promise<void> {
    const until = performance.now() + withinS * 1000
    for (;;) {
      const within_ms = Math.max(execEveryMs, Math.min(ms, until - performance.now()))
      const input = { key: node.key, words: [...words], within_ms }
      const { code } = await this.#keeper.call('unit.exec', input, within_ms + execAnswerMs).catch((error: unknown) => {
        const code = keeperErrorCode(error)
        if (code === undefined || code === 'no_answer') throw error
        if (code === 'not_running') throw conflict(`The node stopped before ${shown(words)} succeeded in it`, stopped)
        throw conflict(`${shown(words)} cannot run in the node: ${(error as Error).message}`, { cause: error })
      })
      if (code === 0) return
      over.throwIfAborted()
      requireRunning(node)
      if (performance.now() >= until)
        throw late(`${shown(words)} did not succeed in the node within ${withinS} s: its last exit code is ${code}`)
      await pause(execEveryMs, over)
    }
  }

  /** Runs one wait; its signal aborts at its end too. */
  async #counted<T>(signal: AbortSignal, wait: (over: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#waits >= maxWaits) throw tooMany(`${maxWaits} requests already wait for nodes; try again later`)
    this.#waits += 1
    const over = new AbortController()
    const forget = onAbort(signal, () => over.abort(signal.reason))
    try {
      return await wait(over.signal)
    } finally {
      this.#waits -= 1
      forget()
      over.abort()
    }
  }

  async #search(
    node: EngineNode,
    { send, expect, quiet_s, echoes = false, within_s = 10 }: ConsoleExpect,
    over: AbortSignal,
    field = 'expect',
  ): Promise<ConsoleMatch> {
    if (expect === undefined && quiet_s === undefined) throw badRequest('body: expected `expect`, `quiet_s`, or both')
    const echo = echoes && send !== undefined ? new EchoFilter(send) : undefined
    const search = new ConsoleSearch(expect === undefined ? undefined : await compiled(field, expect), echo)
    const { readable, writable } = await this.#consoles.open(node, over, { replay: false })
    // Read separately, so that also a wait of 0 s sees it. What comes meanwhile is seen twice.
    if (send === undefined) search.push(await this.#consoles.log(node))
    const until = performance.now() + within_s * 1000
    let isEnded = false
    let heardAt = performance.now()
    let wake = () => {}
    const read = async () => {
      for await (const bytes of readable) {
        search.push(bytes)
        heardAt = performance.now()
        wake()
      }
    }
    read()
      .catch(ignore('the search says how it ended'))
      .finally(() => {
        isEnded = true
        wake()
      })
    const writer = writable.getWriter()
    writer.closed.catch(ignore('the search says how it ended'))
    // A guest that does not read must not hold up the wait.
    if (send !== undefined) writer.write(new TextEncoder().encode(send)).catch(ignore('the search says how it ended'))
    for (;;) {
      const began = performance.now()
      const match = search.isSearched ? undefined : search.next()
      if (match !== undefined) return match
      over.throwIfAborted()
      const now = performance.now()
      const left = until - now
      const quietLeft = quiet_s === undefined ? Number.POSITIVE_INFINITY : heardAt + quiet_s * 1000 - now
      const shown = search.tail && `; its last output was:\n${search.tail}`
      if (!search.isSearched) await pause(Math.min(left, (now - began) * restShare), over)
      else if (isEnded)
        throw conflict(`The node stopped before its console showed ${expect ?? 'all of its output'}${shown}`, stopped)
      else if (quietLeft <= 0 || (left <= 0 && expect === undefined)) return search.unmatched
      else if (left <= 0) throw late(`The console did not show ${expect} within ${within_s} s${shown}`)
      else
        await pause(Math.min(left, quietLeft), over, (it) => {
          wake = it
        })
    }
  }
}

/** A command in a message: that of an image may have any characters, and many. */
const shown = (words: readonly string[]): string => {
  const line = words.join(' ')
  return escapeUnsafe(line.length > maxShown ? `${line.slice(0, maxShown)}...` : line)
}

const stopped = { code: 'node-stopped' } as const
const late = (message: string) => conflict(message, { code: 'not-in-time' })

function requireRunning(node: EngineNode): void {
  if (node.status === 'stopped') throw conflict('The node is not running: start it first', stopped)
}

/** Resolves when a TCP port of this host accepts; 409. */
async function accepts(node: EngineNode, port: number, withinS: number, over: AbortSignal): Promise<void> {
  const until = performance.now() + withinS * 1000
  for (let host = '127.0.0.1'; !(await isAccepted(host, port, over)); host = host === '::1' ? '127.0.0.1' : '::1') {
    over.throwIfAborted()
    requireRunning(node)
    if (performance.now() >= until)
      throw late(`Nothing accepted connections at TCP port ${port} of the host within ${withinS} s`)
    await pause(retryMs, over)
  }
}

const isAccepted = (host: string, port: number, signal: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: connectMs })
    const settle = (result: boolean) => () => {
      forget()
      socket.destroy()
      resolve(result)
    }
    const forget = onAbort(signal, () => socket.destroy())
    socket
      .on('connect', settle(true))
      .on('timeout', settle(false))
      .on('error', settle(false))
      .on('close', settle(false))
  })
