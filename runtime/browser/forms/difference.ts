import { diffLines } from 'diff'
import { counted } from '../parts/counted.ts'

/** A line of a difference; `gap` stands for lines that are the same. */
interface DifferenceLine {
  readonly kind: 'same' | 'added' | 'removed' | 'gap'
  readonly text: string
}

export interface Difference {
  readonly lines: readonly DifferenceLine[]
  readonly added: number
  readonly removed: number
}

/** Equal lines that are shown around a change. */
const context = 2
/** Lines that are shown at most. */
const maxLines = 400
/** Longest time for a comparison, ms. */
const maxMs = 300

/** The difference between two texts, by lines; undefined: they are too different to be compared in time. */
export function differenceOf(before: string, after: string): Difference | undefined {
  const parts = diffLines(before, after, { timeout: maxMs })
  if (parts === undefined) return undefined
  const lines: DifferenceLine[] = []
  let [added, removed] = [0, 0]
  for (const [index, part] of parts.entries()) {
    const texts = part.value.replace(/\n$/, '').split('\n')
    if (part.added) added += texts.length
    if (part.removed) removed += texts.length
    const kind = part.added ? 'added' : part.removed ? 'removed' : 'same'
    const shown = texts.map((text): DifferenceLine => ({ kind, text }))
    lines.push(...(kind === 'same' ? shortened(shown, index === 0, index === parts.length - 1) : shown))
  }
  const left = lines.length - maxLines
  if (left > 0) lines.splice(maxLines, left, { kind: 'gap', text: counted(left, 'more line') })
  return { lines, added, removed }
}

/** Equal lines between two changes, or at an end: those beside a change. */
function shortened(lines: DifferenceLine[], isFirst: boolean, isLast: boolean): DifferenceLine[] {
  const head = isFirst ? 0 : context
  const tail = isLast ? 0 : context
  const left = lines.length - head - tail
  if (left < 2) return lines
  return lines.toSpliced(head, left, { kind: 'gap', text: `${left} lines` })
}
