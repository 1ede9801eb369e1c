import { objectsText } from '../../model/lab/objects-text.ts'
import type { NodeRecord, ProjectRecord } from '../lab/document.ts'
import { type PastEdit, setBy } from '../lab/history.ts'

/** What an edit did, for people: `delete R1 and 2 links`. */
export function editText({ before, after }: Pick<PastEdit, 'before' | 'after'>): string {
  const entries = [...after.keys()].flatMap((key) => {
    const [table = ''] = key.split('/')
    return [{ key, table, old: before.get(key), now: after.get(key) }]
  })
  const objects = entries.filter(({ table }) => ['node', 'link', 'drawing'].includes(table))
  const names = objects.flatMap(({ table, old, now }) =>
    table === 'node' ? (((old ?? now) as NodeRecord | undefined)?.name ?? []) : [],
  )
  const count = (table: string) => objects.filter((it) => it.table === table).length
  const text = objectsText(names, count('link'), count('drawing'))
  if (objects.length === 0) return projectText(before.get('project'), after.get('project'))
  if (objects.every(({ old }) => old === undefined)) return `add ${text}`
  if (objects.every(({ now }) => now === undefined)) return `delete ${text}`
  const fields = new Set(objects.flatMap(({ key, old, now }) => changedFields(key, old, now)))
  const isOnly = (...wanted: string[]) => [...fields].every((field) => wanted.includes(field))
  if (isOnly('name', 'label')) return `rename ${text}`
  return `${isOnly('x', 'y', 'z') ? 'move' : 'change'} ${text}`
}

/** The fields that a user sets and that differ. */
function changedFields(key: string, old: unknown, now: unknown): string[] {
  const [a, b] = [setBy(key, old), setBy(key, now)].map((value) => (value ?? {}) as Readonly<Record<string, unknown>>)
  const fields = new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})])
  return [...fields].filter((field) => JSON.stringify(a?.[field]) !== JSON.stringify(b?.[field]))
}

function projectText(old: unknown, now: unknown): string {
  const [a, b] = [old as ProjectRecord | undefined, now as ProjectRecord | undefined]
  return a?.name === b?.name ? 'change the settings of the lab' : `rename the lab ${a?.name ?? ''}`
}
