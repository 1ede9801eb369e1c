import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, exits, wrongArguments } from './exits.ts'

/** Asks the user; CommandError 64 without a terminal and without `--yes`, 130 for "no". `done`: what then was not done, such as `deleted`. */
export async function requireYes(
  question: string,
  { yes, json }: { readonly yes: boolean; readonly json: boolean },
  done: string,
): Promise<void> {
  if (yes) return
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true || json)
    throw wrongArguments(`cannot ask without a terminal; nothing was ${done}`, '--yes skips the question')
  if (!(await isConfirmed(question))) throw new CommandError(exits.interrupted, `nothing was ${done}`)
}

/** Asks a question on the terminal; whether the answer is yes. */
export async function isConfirmed(question: string): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  if (await dropTypedAhead(process.stdin)) return false
  return (await confirm({ message: question, initialValue: false, output: process.stderr })) === true
}

/** Without a key for this time, ms, nothing more was typed ahead. */
const quietMs = 100
const ctrlC = 0x03

/** Drops what was typed before a question is shown: it is not an answer to it. True when Ctrl-C was among it. */
async function dropTypedAhead(terminal: typeof process.stdin): Promise<boolean> {
  let typed: Buffer[] = []
  let isInterrupted = false
  const onData = (bytes: Buffer) => typed.push(bytes)
  terminal.setRawMode(true)
  terminal.on('data', onData)
  do {
    typed = []
    await sleep(quietMs)
    isInterrupted ||= typed.some((bytes) => bytes.includes(ctrlC))
  } while (typed.length > 0)
  terminal.off('data', onData).pause()
  terminal.setRawMode(false)
  return isInterrupted
}
