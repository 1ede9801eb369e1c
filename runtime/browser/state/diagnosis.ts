import type { Compute, Diagnosis } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { client, send } from './client.ts'
import { type Finding, type Prevented, preventedIn, shortFinding } from './prevented.ts'

/** Where a compute says what its doctor finds. */
export const doctorPath = ({ compute_id }: Pick<Compute, 'compute_id'>): string =>
  compute_id === 'local' ? '/v2/compute/doctor' : `/v2/computes/${encodeURIComponent(compute_id)}/doctor`

/** The findings of the service, or of a compute through it: both have the same form. */
export async function diagnosisAt(path: string): Promise<Diagnosis> {
  const response = await send(path, {})
  const answer = (await response.json()) as Diagnosis & { message?: string }
  if (!response.ok) throw new Error(answer.message ?? `The service answered ${response.status}`)
  return answer
}

/** By kind: why no compute can run its nodes, and how to mend it on one of them. Nothing when a compute does not say. Never rejects. */
export async function findPrevented(): Promise<Prevented> {
  const computes = (await client.call('GET /v2/computes').catch(ignore('it asks its own machine'))) ?? []
  const paths = computes.length === 0 ? ['/v2/compute/doctor'] : computes.map(doctorPath)
  const found = await Promise.all(paths.map(diagnosisAt)).catch(ignore('all kinds are offered'))
  return preventedIn(found ?? [])
}

/** How long a diagnosis is shown in the palette, ms: to look again takes the machine a second. */
const recentMs = 5 * 60_000
let recent: { readonly at: number; readonly prevented: Promise<Prevented> } | undefined

/** By kind that no compute can run: what is missing, and how to mend it, as the doctor said in the last minutes. Never rejects. */
export async function missingPrograms(): Promise<
  ReadonlyMap<string, { readonly found: string; readonly fix: string }>
> {
  if (recent === undefined || Date.now() - recent.at > recentMs) recent = { at: Date.now(), prevented: findPrevented() }
  const line = (checks: readonly Finding[]) => ({
    found: checks.map(shortFinding).join('; '),
    fix: checks.flatMap(({ fix }) => fix ?? []).join('; '),
  })
  return new Map([...(await recent.prevented)].map(([kind, checks]) => [kind, line(checks)]))
}
