import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { shellWords } from '../../../src/model/kinds/machine-options/shell-words.ts'

const longestMs = 60_000

/** An emulator that was run without us. */
export interface DirectMachine {
  readonly child: ChildProcess
  /** Milliseconds from before the spawn until the guest was let go. */
  readonly startMs: number
  /** Ends it as the keeper does; the milliseconds until it has ended. */
  stop(): Promise<number>
}

/** Runs the command line of a node, and lets its guest go, with the least that this takes. */
export async function startDirect(commandLine: string, cwd: string): Promise<DirectMachine> {
  // The keeper hands over sockets, which are not there: these take their place.
  const unwired = commandLine.replaceAll(/(-netdev )dgram,(id=[\w-]+),local\.type=fd\S*/g, '$1hubport,$2,hubid=0')
  const [command = '', ...args] = shellWords(unwired, 'command_line')
  const monitor = args.map((arg) => /^socket,id=pb-qmp,path=([^,]+)/.exec(arg)?.[1]).find((it) => it !== undefined)
  if (monitor === undefined) throw new Error(`no monitor in ${commandLine}`)
  const began = performance.now()
  const child = spawn(command, args, { cwd, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdout.resume()
  const ended = once(child, 'exit')
  const qmp = await reach(monitor, child)
  await letGo(qmp)
  const startMs = performance.now() - began
  return {
    child,
    startMs,
    async stop() {
      const asked = performance.now()
      child.kill('SIGTERM')
      await ended
      const stopMs = performance.now() - asked
      qmp.destroy()
      rmSync(monitor, { force: true })
      return stopMs
    },
  }
}

/** Much more often than the service does: what is measured is the emulator. */
async function reach(path: string, child: ChildProcess): Promise<Socket> {
  const until = performance.now() + longestMs
  for (;;) {
    const socket = createConnection(path)
    try {
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (child.exitCode !== null || performance.now() > until) throw error
      await pause(1)
    }
  }
}

async function letGo(socket: Socket): Promise<void> {
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  await lines.next()
  for (const execute of ['qmp_capabilities', 'cont']) {
    socket.write(`${JSON.stringify({ execute })}\n`)
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the emulator ended')
      if ('return' in JSON.parse(value)) break
    }
  }
  socket.resume()
}
