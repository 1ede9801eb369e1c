import { type Part, quoted } from './source.ts'

/** Options of QEMU with one value, for a serial port or monitor where somebody started it in a terminal. */
const ofTerminal = (option: string, value: string | undefined): boolean =>
  (option === 'serial' && /^(mon:)?stdio$/.test(value ?? '')) || (option === 'monitor' && value !== undefined)

/**
 * Options of QEMU of another program without those that open a console or monitor in its terminal (`-serial mon:stdio`, `-monitor ...`): a node has its own ones. They are listed.
 */
export function consoleOptions(part: Part): { options?: string } {
  const text = part.textOrNone() ?? ''
  const words = text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []
  const kept: string[] = []
  const left: string[] = []
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string
    const [, option = ''] = /^--?(\w+)$/.exec(word) ?? []
    const value = words[index + 1]
    if (ofTerminal(option, value)) {
      left.push(`${word} ${value}`)
      index += 1
    } else kept.push(word)
  }
  if (left.length === 0) return text === '' ? {} : { options: text }
  part.leaveOut(`${left.map(quoted).join(', ')} is not imported: the console of the node is in its place`)
  return kept.length === 0 ? {} : { options: kept.join(' ') }
}
