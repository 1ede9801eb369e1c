import { checkWithNames } from '../../labfile/checks.ts'
import type { LabCheck, LabTasksRecord } from '../../model/lab/task.ts'
import { type LabDocument, type LinkRecord, type NodeRecord, tasksKey } from './document.ts'
import type { LabEntries } from './store.ts'

/** The tasks of a lab after changes that rename nodes or links which their checks name. Undefined: they stay as they are. */
export function tasksWithNames(document: LabDocument, changes: LabEntries): LabTasksRecord | undefined {
  const { tasks } = document
  if (tasks === undefined || changes.has(tasksKey)) return undefined
  const [nodes, links] = [new Map<string, string>(), new Map<string, string>()]
  for (const [key, value] of changes) {
    const [table, id = ''] = key.split('/')
    if (value === undefined) continue
    if (table === 'node') addRename(nodes, document.nodes.get(id)?.name, (value as NodeRecord).name)
    if (table === 'link') addRename(links, document.links.get(id)?.name, (value as LinkRecord).name)
  }
  if (nodes.size + links.size === 0) return undefined
  const checks = tasks.checks.map((check) =>
    withLinks(
      checkWithNames(check, (name) => nodes.get(name) ?? name),
      links,
    ),
  )
  const names = new Map(tasks.checks.map(({ name }, index) => [name, checks[index]?.name ?? name]))
  return {
    ...tasks,
    tasks: tasks.tasks.map((task) => ({ ...task, checks: task.checks.map((name) => names.get(name) ?? name) })),
    checks,
  }
}

function addRename(renames: Map<string, string>, before: string | null | undefined, after: string | null | undefined) {
  if (before != null && after != null && before !== after) renames.set(before, after)
}

const withLinks = <T extends LabCheck>(check: T, links: ReadonlyMap<string, string>): T => {
  if (check.check === 'not') return { ...check, of: withLinks(check.of, links) }
  return check.check === 'link' ? { ...check, link: links.get(check.link) ?? check.link } : check
}
