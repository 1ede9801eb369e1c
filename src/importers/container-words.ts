import { ApiError } from '../lib/errors/api-error.ts'
import type { ContainerFile } from '../model/kinds/container.ts'
import { shellWords } from '../model/kinds/machine-options/shell-words.ts'
import type { Part } from './source.ts'

/** A file that a container begins with: its text, or the file beside the lab that has it. */
export type GivenContainerFile = Omit<ContainerFile, 'text'> & { readonly text?: string; readonly file?: string }

/** Why settings of other programs have nothing in their place. */
export const noLimits = {
  memory: 'containers have no limits of memory here',
  processors: 'containers have no limits of processors here',
} as const

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

/** A node with several links forwards: it is on in the containers of Docker, whose host forwards. */
export const forwarding = (links: number): readonly string[] => (links > 1 ? ['net.ipv4.ip_forward=1'] : [])
