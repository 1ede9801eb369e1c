/** Under which this tab keeps whose link it was opened by; a page that is loaded again has it no more in its address. */
const key = 'patchbay.student'

/** The student whose link opened this tab, at a service that asks nobody who they are: elsewhere the session says it. */
export interface OwnStudent {
  readonly project_id: string
  readonly student: string
}

export const keepStudent = ({ project_id, student }: OwnStudent): void =>
  sessionStorage.setItem(key, JSON.stringify({ project_id, student }))

/** As who this tab is in a lab; undefined: nobody knows. */
export function studentIn(project_id: string): string | undefined {
  const kept = JSON.parse(sessionStorage.getItem(key) ?? 'null') as OwnStudent | null
  return kept?.project_id === project_id ? kept.student : undefined
}
