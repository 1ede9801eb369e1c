import { Check } from '@sinclair/typebox/value'
import type { Fields } from '../labfile/text.ts'
import { ApiError } from '../lib/errors/api-error.ts'
import { type ContainerFile, containerSettings, leastRam } from '../model/kinds/container.ts'
import { shellWords } from '../model/kinds/machine-options/shell-words.ts'
import { type Part, quoted } from './source.ts'

/** A file that a container begins with: its text, or the file beside the lab that has it. */
export type GivenContainerFile = Omit<ContainerFile, 'text'> & { readonly text?: string; readonly file?: string }

/** A limit of memory (MB), or of processors, of another program; one that no container has is listed. 0 is none. */
export function limitOf(part: Part | undefined, name: 'ram' | 'cpus', value = part?.numberOrNone() ?? 0): Fields {
  const limit = name === 'ram' ? Math.round(value) : value
  if (limit === 0) return {}
  if (Check(containerSettings[name], limit) && (name === 'cpus' || limit >= leastRam)) return { [name]: limit }
  part?.leaveOut(`is not imported: a container has no such limit, ${quoted(part.value)}`)
  return {}
}

/** A text of words as a shell has them; empty, and listed, if it is not one. */
export function shellText(part: Part | undefined, key: string): string {
  const text = part?.textOrNone() ?? ''
  try {
    shellWords(text, key)
    return text
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    part?.leaveOut(`is not imported: ${error.message.slice(key.length + 2)}`)
    return ''
  }
}
