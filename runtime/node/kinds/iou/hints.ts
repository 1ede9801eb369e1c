import type { Exit } from '../../keeper-protocol/protocol.ts'

/** How images end that this host cannot run: SIGSEGV, or that as a code. */
const segmentationFault = 11
/** What a shell, and setpriv(1), say of what cannot be executed (POSIX). */
const cannotExecute = [126, 127]

/** What may help when an image ended like that. */
export function hintOf({ code, signal }: Pick<Exit, 'code' | 'signal'>): string | undefined {
  if (signal === 'SIGSEGV' || code === segmentationFault || code === 128 + segmentationFault) {
    return 'the image may be damaged, want more memory, or not run on this host: try another one, or another release of it'
  }
  if (code !== null && cannotExecute.includes(code)) {
    return 'this host lacks something the image needs, such as its loader or a library'
  }
  return undefined
}
