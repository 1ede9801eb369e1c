import { spawn } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { missingLine } from './expected.ts'
import { Output } from './output.ts'
import { type ShellPlace, signalGroup } from './shell.ts'

/** For a guest to boot, and for a network to converge. */
const maxMs = 90_000
/** A console may have shown its prompt long ago: Enter has it shown again. */
const nudgeMs = 2000

/** At the end of what was shown. */
const anyPrompt = /(^|\n)\S+[>#] ?$/

interface Step {
  readonly prompt: string
  readonly typed: string
  readonly expected: string
}

export interface Session {
  readonly command: string
  readonly steps: readonly Step[]
}

/** A block of a session: `$ command`, then lines that begin with a prompt, with what they show below. */
export function parseSession(content: string): Session {
  const [first = '', ...rest] = content.split('\n')
  if (!first.startsWith('$ ')) throw new Error('a session begins with "$ " and a command')
  const steps: Step[] = []
  for (const line of rest) {
    const [, prompt, typed = ''] = /^(\S+[>#])(?: (.*))?$/.exec(line) ?? []
    const last = steps.at(-1)
    if (prompt !== undefined) steps.push({ prompt, typed, expected: '' })
    else if (last === undefined) throw new Error(`"${line}" comes before a prompt`)
    else steps[steps.length - 1] = { ...last, expected: `${last.expected}${line}\n` }
  }
  return { command: first.slice(2), steps }
}

/** Types a session, and waits for what it shows. A command is typed again until it shows that, as a person would. */
export async function runSession({ command, steps }: Session, { cwd, env }: ShellPlace): Promise<void> {
  const child = spawn('bash', ['-c', `exec ${command}`], { cwd, env, detached: true })
  const output = new Output()
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.add(bytes))
  child.once('exit', () => output.end())
  child.stdin.on('error', () => {})
  const type = (text: string) => child.stdin.write(`${text}\r`)
  const nudge = setInterval(() => type(''), nudgeMs)
  try {
    for (const [at, { prompt, typed, expected }] of steps.entries()) {
      await output.until((text) => text.includes(prompt), maxMs)
      if (at === 0) clearInterval(nudge)
      const deadline = Date.now() + maxMs
      // Of a command that is to show nothing: that it has ended.
      const isThere = (text: string) =>
        expected === '' ? anyPrompt.test(text) : missingLine(expected, text) === undefined
      const isWaiting = (text: string) => text.trimEnd().endsWith(`\n${prompt}`)
      output.forget()
      type(typed)
      for (;;) {
        const left = Math.max(0, deadline - Date.now())
        const shown = await output.until((text) => isThere(text) || isWaiting(text), left)
        if (isThere(shown)) break
        if (left === 0) throw new Error(`"${missingLine(expected, shown)}" is not in:\n${shown}`)
        await pause(1000)
        // A prompt of before may have come late: then the command is still at work.
        if (!isWaiting(output.text)) continue
        output.forget()
        type(typed)
      }
    }
  } finally {
    clearInterval(nudge)
    signalGroup(child.pid, 'SIGKILL')
  }
}
