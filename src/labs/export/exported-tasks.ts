import { addressIn, checkWithNames } from '../../labfile/checks.ts'
import type { Desired, DesiredCheck } from '../../labfile/desired.ts'
import { keyOf } from '../../labfile/names.ts'
import { kindOf } from '../../model/kinds/node.ts'
import type { LabCheck, LabTasksRecord } from '../../model/lab/task.ts'

const nowhere = { line: 1, column: 1, path: '' }

/**
 * The lab with its tasks and their checks, as a lab file has them. `names`: the names of nodes in the file, by those in the lab. Checks of nodes
 * and links that are gone are left out; `leftOut` names them.
 */
export function withTasks(
  desired: Desired,
  { tasks, checks }: LabTasksRecord,
  names: ReadonlyMap<string, string>,
): { readonly desired: Desired; readonly leftOut: readonly string[] } {
  const nodes = new Map(desired.nodes.map((node) => [keyOf(node.name), node]))
  const links = new Set(desired.links.map(({ name = '' }) => keyOf(name)))
  const isThere = (check: LabCheck): boolean => {
    if (check.check === 'not') return isThere(check.of)
    if (check.check === 'link') return links.has(keyOf(check.link))
    const node = nodes.get(keyOf(check.check === 'ping' ? check.from : check.on))
    if (node === undefined) return false
    return check.check === 'ping' ? kindOf(node.kind).canPing === true : node.segment === undefined
  }
  /** A ping of a node whose address is another one by now is one of the address. */
  const withAddress = <T extends LabCheck>(check: T): T => {
    if (check.check === 'not') return { ...check, of: withAddress(check.of) }
    if (check.check !== 'ping') return check
    const target = nodes.get(keyOf(check.to))
    const isSame = target !== undefined && addressIn(target.configs.startup?.text) === check.address
    return isSame || check.to === check.address ? check : { ...check, to: check.address }
  }
  const renamed = checks.map((check) => checkWithNames(check, (name) => names.get(name) ?? name))
  const newNames = new Map(checks.map(({ name }, index) => [name, renamed[index]?.name ?? name]))
  const kept = renamed.filter(isThere)
  const keptNames = new Set(kept.map(({ name }) => name))
  return {
    desired: {
      ...desired,
      checks: kept.map((check) => placed(withAddress(check))),
      tasks: tasks.map((task) => ({
        ...task,
        checks: task.checks.map((name) => newNames.get(name) ?? name).filter((name) => keptNames.has(name)),
      })),
    },
    leftOut: renamed
      .filter((check) => !isThere(check))
      .map(({ name }) => `The check ${name}: what it is about is not in the lab.`),
  }
}

const placed = (check: LabCheck): DesiredCheck =>
  (check.check === 'not' ? { ...check, at: nowhere, of: placed(check.of) } : { ...check, at: nowhere }) as DesiredCheck
