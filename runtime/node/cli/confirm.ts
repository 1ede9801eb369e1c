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
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: question, initialValue: false, output: process.stderr })
  if (isCancel(answer) || !answer) throw new CommandError(exits.interrupted, `nothing was ${done}`)
}
