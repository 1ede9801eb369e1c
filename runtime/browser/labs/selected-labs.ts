import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { plainReason } from '../editing/job-text.ts'
import { messageOf } from '../state/notices.ts'

/** The most labs of a selection that are started, stopped or deleted at a time. */
const atATime = 4
/** The most labs that one message names. */
const maxNamed = 5

/** The labs that are selected and shown: what the search hides is left alone. In the order in which they are shown. */
export const selectedLabs = <T extends { readonly project_id: string }>(
  labs: readonly T[],
  chosen: ReadonlySet<string>,
  shown: readonly string[],
): T[] => shown.filter((id) => chosen.has(id)).flatMap((id) => labs.find(({ project_id }) => project_id === id) ?? [])

/** Does something with each lab, a few at a time. What failed, such as `net-Ada: the disk is full`. Never rejects. */
export async function withEach<T extends { readonly name: string }>(
  labs: readonly T[],
  act: (lab: T) => Promise<unknown>,
): Promise<string[]> {
  const failed = await mapLimit(
    labs,
    (lab) =>
      act(lab).then(
        () => [],
        (error: unknown) => [`${lab.name}: ${plainReason(messageOf(error))}`],
      ),
    atATime,
  )
  return failed.flat()
}

/** One message for all that failed. `not`: what they did not do, such as `did not start`. */
export function failuresText(failed: readonly string[], total: number, not: string): string {
  const named = failed.slice(0, maxNamed).join('; ')
  const more = failed.length > maxNamed ? `; and ${failed.length - maxNamed} more` : ''
  return `${failed.length} of ${total} ${total === 1 ? 'lab' : 'labs'} ${not}: ${named}${more}`
}
