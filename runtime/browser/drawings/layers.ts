import type { LabDrawing } from '../../../src/client/patchbay.ts'

type Layered = Pick<LabDrawing, 'drawing_id' | 'z'>

/** The service has layers from -1000 to 1000. */
const most = 1000

/** The order in which drawings are drawn, the hindmost first. */
export const stacked = <T extends Layered>(drawings: readonly T[]): T[] => drawings.toSorted((a, b) => a.z - b.z)

/** The layers that change when drawings come before all others, or behind them; among each other they keep their order. */
export function restacked(
  drawings: readonly Layered[],
  moved: ReadonlySet<string>,
  side: 'front' | 'back',
): Map<string, number> {
  const now = stacked(drawings)
  const [ours, others] = [now.filter((it) => moved.has(it.drawing_id)), now.filter((it) => !moved.has(it.drawing_id))]
  const wanted = side === 'front' ? [...others, ...ours] : [...ours, ...others]
  if (wanted.every((it, index) => it === now[index])) return new Map()
  const first = side === 'front' ? (others.at(-1)?.z ?? 0) + 1 : (others[0]?.z ?? 0) - ours.length
  const hasRoom = first >= -most && first + ours.length - 1 <= most
  const layers = hasRoom
    ? ours.map((it, index) => [it, first + index] as const)
    : wanted.map((it, index) => [it, index - Math.floor(wanted.length / 2)] as const)
  return new Map(layers.flatMap(([{ drawing_id, z }, layer]) => (z === layer ? [] : [[drawing_id, layer] as const])))
}
