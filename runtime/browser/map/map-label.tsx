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

interface OthersProps {
  /** Of a node, a link or a drawing. */
  readonly id: string
  readonly store: LabStore
  readonly at: () => Point
}

/** The names of the others at the lab who have selected it. */
export function Others({ id, store, at }: OthersProps) {
  // Computed as a text: the selection of other things leaves it equal, and does not render this again.
  const { value: names } = useComputed(() => [...(store.selectedBy.value.get(id) ?? [])].join(', '))
  return names === '' ? null : <Label kind="others" text={shortened(names, maxName)} at={at} />
}
