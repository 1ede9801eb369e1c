import { badRequest } from '../../../lib/errors/api-error.ts'
import { judgeOptions, optionFlags } from './option-rules.ts'
import { shellWords } from './shell-words.ts'

/** An option of an emulator. */
export interface EmulatorOption {
  /** Without dashes; '' for a bare word, which is a disk. */
  readonly name: string
  readonly argument: string | undefined
}

/** QEMU accepts one or two dashes. */
export const nameIn = (token: string | undefined): string | undefined => /^--?(.+)$/.exec(token ?? '')?.[1]

/** The options in the words of a command line; 400 when the last one lacks its argument. */
export function optionsIn(tokens: readonly string[]): EmulatorOption[] {
  const options: EmulatorOption[] = []
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] ?? ''
    const name = nameIn(token)
    if (name === undefined) options.push({ name: '', argument: token })
    else if (optionFlags.has(name)) options.push({ name, argument: undefined })
    else {
      const argument = tokens[++index]
      if (argument === undefined) throw badRequest(`options: -${name} at the end, expected its argument`)
      options.push({ name, argument })
    }
  }
  return options
}

/** The options in a text that only local mode allows, as a user writes them. A text that cannot be parsed is returned whole. */
export function unsafeOptions(text: string): string[] {
  try {
    return optionsIn(shellWords(text, 'options')).flatMap(({ name, argument }) => {
      if (name !== '' && judgeOptions(name, argument ?? '') === 'allowed') return []
      return [[...(name === '' ? [] : [`-${name}`]), ...(argument === undefined ? [] : [argument])].join(' ')]
    })
  } catch {
    return [text]
  }
}
