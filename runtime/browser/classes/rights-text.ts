import { limitsText } from '../../../src/client/limits-text.ts'
import type { ClassStudent } from '../../../src/client/patchbay.ts'
import { counted } from '../parts/counted.ts'

/** What the links of a class let its students do, such as `Each student: at most 5 nodes`; empty for no students. */
export function rightsText(students: readonly Pick<ClassStudent, 'token'>[]): string {
  const counts = new Map<string, number>()
  for (const { token } of students) {
    const rights = rightsOf(token)
    counts.set(rights, (counts.get(rights) ?? 0) + 1)
  }
  if (counts.size === 1) return [...counts.keys()].map((rights) => `Each student: ${rights}.`).join('')
  return [...counts].map(([rights, count]) => `${counted(count, 'student')}: ${rights}.`).join(' ')
}

function rightsOf(token: ClassStudent['token']): string {
  if (token === null) return 'no link'
  const limits = limitsText(token.limits ?? {})
  const role = token.role === 'read' ? ['may only look'] : []
  return [...role, limits === '' ? 'no limits' : `at most ${limits}`].join(', ')
}
