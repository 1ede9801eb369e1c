import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeTransitions } from '../../runtime/node/engine/nodes/states.ts'
import { labTransitions } from '../../src/labs/lab-states.ts'
import { restoreTransitions } from '../../src/labs/snapshots/restore-states.ts'
import type { Transitions } from '../../src/lib/state-machine.ts'
import { restoreSteps } from '../../src/model/project-snapshot.ts'

/** The tables, with the states after which nothing follows. */
const tables: readonly { readonly of: string; readonly table: Transitions<string, string>; readonly last?: string }[] =
  [
    { of: 'a node', table: nodeTransitions },
    { of: 'a lab', table: labTransitions, last: 'deleted' },
    { of: 'a restore', table: restoreTransitions },
    { of: 'a restore at a compute', table: restoreSteps },
  ]
const text = await readFile(join(import.meta.dirname, '../../docs/architecture.md'), 'utf8')

test.for(tables)('docs/architecture.md shows the transitions of $of', ({ table }) => {
  const all = Object.entries(table)
  const states = new Set(all.flatMap(([, { from }]) => from))
  const rows = all.map(([event, { from, to, when }]) => {
    const left = from.length === states.size ? 'any' : from.join(', ')
    return { left, arrow: `── ${event} `, to, when }
  })
  const width = (member: 'left' | 'arrow' | 'to') => Math.max(...rows.map((row) => row[member].length))
  const [left, arrow, to] = [width('left'), width('arrow'), width('to')]
  const shown = rows.map(
    (row) => `  ${row.left.padEnd(left)} ${row.arrow.padEnd(arrow, '─')}─▶ ${row.to.padEnd(to)}  ${row.when}`,
  )
  expect(text).toContain(`\`\`\`\n${shown.join('\n')}\n\`\`\``)
})

test.for(tables)('every state of $of is reached, and left', ({ table, last }) => {
  const all = Object.values(table)
  const [left, reached] = [all.flatMap(({ from }) => [...from]), all.map(({ to }) => to)]
  for (const state of left) expect(reached).toContain(state)
  for (const state of reached) if (state !== 'before' && state !== last) expect(left).toContain(state)
})
