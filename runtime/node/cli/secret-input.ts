import { CommandError, exits, wrongArguments } from './exits.ts'

const maxCharacters = 4096

/**
 * A secret that the user types without an echo, or the first line of standard input. An argument would be shown by `ps`. `what`: such as
 * `a token`. CommandError 64 without one, 130 for Ctrl-C.
 */
export async function secretInput(message: string, what: string): Promise<string> {
  const secret = (process.stdin.isTTY === true ? await typed(message) : await firstLine()).trim()
  if (secret === '') throw wrongArguments(`expected ${what} on standard input, got none`)
  if (secret.length > maxCharacters) throw wrongArguments(`expected ${what} of at most ${maxCharacters} characters`)
  return secret
}

async function typed(message: string): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const answer = await password({ message, output: process.stderr })
  if (isCancel(answer)) throw new CommandError(exits.interrupted, 'nothing was done')
  return answer
}

async function firstLine(): Promise<string> {
  let text = ''
  for await (const piece of process.stdin.setEncoding('utf8')) {
    text += piece
    if (text.includes('\n') || text.length > maxCharacters) break
  }
  return text.split('\n', 1)[0] ?? ''
}
