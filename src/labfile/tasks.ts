import { maxTasks, maxTaskTexts } from '../model/lab/task-limits.ts'
import type { DesiredCheck, DesiredTask } from './desired.ts'
import { type Diagnostics, didYouMean, quoted } from './diagnostics.ts'
import { keyOf } from './names.ts'
import type { Position } from './position.ts'
import type { Reader } from './reader.ts'
import { sections } from './schema.ts'
import { at, type Value } from './values.ts'

interface TaskInputs {
  readonly reader: Reader
  /** The checks of the file that have no fault. */
  readonly checks: readonly DesiredCheck[]
  /** Its checks as they are written. */
  readonly section: Value | undefined
  readonly diagnostics: Diagnostics
}

/** The tasks of a file. Undefined: it says nothing of tasks. */
export function readTasks(
  tasks: Value | undefined,
  { reader, checks, section, diagnostics }: TaskInputs,
): DesiredTask[] | undefined {
  if (tasks === undefined) return undefined
  if (tasks.type !== 'list' || tasks.items.length > maxTasks) {
    reader.member(sections.tasks, tasks)
    return []
  }
  const names = checkNames(checks, section)
  const taken = new Map<string, Position>()
  let characters = 0
  const read = tasks.items.flatMap((value): DesiredTask[] => {
    const given = reader.read(sections.tasks.items, value)
    if (given === undefined) return []
    const { name, text = '', checks: wanted = [], points = 1 } = given
    const other = taken.get(keyOf(name))
    if (other !== undefined)
      diagnostics.add(
        at(value, 'name')?.at ?? value.at,
        `the name ${quoted(name)} is taken by the task in line ${other.line}`,
      )
    taken.set(keyOf(name), value.at)
    characters += text.length
    const list = at(value, 'checks')
    for (const [index, word] of wanted.entries()) {
      const where = (list?.type === 'list' ? list.items[index]?.at : undefined) ?? value.at
      const count = names.get(keyOf(word))?.count ?? 0
      if (count === 0)
        diagnostics.add(
          where,
          `there is no check ${quoted(word)}`,
          () =>
            didYouMean(
              word,
              [...names.values()].map((known) => known.name),
            ) ?? 'give a check this name',
        )
      if (count > 1) diagnostics.add(where, `${count} checks have the name ${quoted(word)}`, 'give each its own name')
    }
    return [{ name, text, points, checks: wanted.map((word) => names.get(keyOf(word))?.name ?? word) }]
  })
  if (characters > maxTaskTexts)
    diagnostics.add(
      tasks.at,
      `the texts of the tasks have ${characters} characters`,
      `together they have at most ${maxTaskTexts}`,
    )
  return read
}

/** The names of checks by their keys, and how many checks have each. A check with a fault has its name, too, if it is given one. */
function checkNames(
  checks: readonly DesiredCheck[],
  section: Value | undefined,
): ReadonlyMap<string, { readonly name: string; readonly count: number }> {
  const known = new Set(checks.map((check) => check.at.path))
  const faulty = section?.type === 'list' ? section.items.filter((item) => !known.has(item.at.path)) : []
  const given = faulty.flatMap((item) => {
    const name = at(item, 'name')
    return name?.type === 'scalar' ? [String(name.value)] : []
  })
  const all = new Map<string, { name: string; count: number }>()
  for (const name of [...checks.map((check) => check.name), ...given])
    all.set(keyOf(name), { name, count: (all.get(keyOf(name))?.count ?? 0) + 1 })
  return all
}
