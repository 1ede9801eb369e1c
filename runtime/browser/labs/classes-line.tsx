import { counted } from '../parts/counted.ts'
import { classPath } from '../state/route.ts'
import { isOnWall } from '../state/session.ts'
import type { LabList } from './lab-list.ts'

/** The classes whose labs are not listed one by one: each leads to its wall. A search finds the labs. */
export function ClassesLine({ list }: { list: LabList }) {
  const counts = new Map<string, number>()
  for (const lab of list.labs.values().filter(isOnWall)) {
    const { name = '' } = lab.class ?? {}
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  if (counts.size === 0) return null
  return (
    <p class="row form-actions">
      Classes:
      {[...counts].map(([name, count]) => (
        <a key={name} href={classPath(name)}>
          <bdi>{name}</bdi> ({counted(count, 'lab')})
        </a>
      ))}
    </p>
  )
}
