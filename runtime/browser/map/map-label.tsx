import { useComputed } from '@preact/signals'
import type { LabStore } from '../state/lab-store.ts'
import type { Point } from './geometry.ts'
import { shortened } from './labels.ts'

/** Characters that fit above and below a tile. */
export const maxName = 22

interface LabelProps {
  readonly kind: 'port' | 'others'
  readonly text: string
  /** Its middle; may read signals: a move draws nothing else again. */
  readonly at: () => Point
}

/** A short text on the map. */
export function Label({ kind, text, at }: LabelProps) {
  const x = useComputed(() => at().x)
  const y = useComputed(() => at().y)
  return (
    <text class={kind} x={x} y={y}>
      {text}
    </text>
  )
}

/**
 * The names of the others at the lab who have selected a node, a link or a drawing. A text: the selection of other things leaves it equal.
 * No component of its own, as each of thousands of shapes has it and hardly one has a name.
 */
export const useOthers = (id: string, store: LabStore): string =>
  useComputed(() => shortened([...(store.selectedBy.value.get(id) ?? [])].join(', '), maxName)).value
