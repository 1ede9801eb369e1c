import type { Desired } from './desired.ts'

/** Distance of nodes that are placed on a grid, pixels. */
const gridStep = 120

/** Positions for the nodes without one, by name in lower case: a grid below those that have one, in the order of the file. */
export function gridPositions({ nodes }: Pick<Desired, 'nodes'>): Map<string, { x: number; y: number }> {
  const without = nodes.filter(({ settings }) => settings.x === undefined && settings.y === undefined)
  const columns = Math.max(1, Math.ceil(Math.sqrt(without.length)))
  const below = nodes.filter(({ settings }) => settings.y !== undefined).map(({ settings }) => settings.y as number)
  const top = below.length === 0 ? 0 : Math.max(...below) + gridStep
  return new Map(
    without.map(({ name }, index) => [
      name.toLowerCase(),
      { x: gridStep * (index % columns), y: top + gridStep * Math.floor(index / columns) },
    ]),
  )
}
