import { ApiError } from '../lib/errors/api-error.ts'
import { shellWords } from '../model/kinds/machine-options/shell-words.ts'
import type { Part } from './source.ts'

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

/** What the programs of an image need; zebra of FRR asks for a capability. */
export function imageNeeds(image: string): { readonly symbol: string; readonly capabilities: readonly string[] } {
  return /frr/i.test(image) ? { symbol: 'router', capabilities: ['SYS_ADMIN'] } : { symbol: '', capabilities: [] }
}

/** A node with several links forwards: it is on in the containers of Docker, whose host forwards. */
export const forwarding = (links: number): readonly string[] => (links > 1 ? ['net.ipv4.ip_forward=1'] : [])
