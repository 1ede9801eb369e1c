import { ignoreNotFound } from '../../lib/errors/api-error.ts'
import type { AccessToken } from '../../model/access/access-token.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { TicketOffice } from '../http/tickets.ts'
import { keyOfToken, type Tokens } from './tokens.ts'

// The link of a student is a token with limits, be they empty, the name of the student, and one project by its id.

/** Whose link, and to which project. */
export interface LinkOf {
  readonly student: string
  readonly project_id: string
}

/** The link of a student among all tokens, valid or not, the oldest first. */
export const linksOf = ({ student, project_id }: LinkOf, tokens: readonly AccessToken[]): AccessToken[] =>
  tokens.filter(
    ({ name, role, limits, projects = [] }) =>
      projects.length === 1 &&
      projects[0] === project_id &&
      nameKey(name) === nameKey(student) &&
      role !== 'admin' &&
      limits !== undefined,
  )

/** The link that a student can use now; null: there is none. */
export const validLinkOf = (link: LinkOf, tokens: readonly AccessToken[]): AccessToken | null =>
  linksOf(link, tokens).findLast(({ expires_at }) => expires_at === null || Date.parse(expires_at) > Date.now()) ?? null

/** Revokes links, and the tickets of them. One that is gone already is no failure. */
export async function revokeAll(
  tokens: Tokens,
  tickets: Pick<TicketOffice, 'void'>,
  links: readonly AccessToken[],
): Promise<void> {
  for (const { token_id } of links) {
    await tokens.revoke(token_id).catch(ignoreNotFound)
    tickets.void(keyOfToken(token_id))
  }
}

/** Revokes the links of students, where the service has tokens. */
export async function revokeLinks(
  { tokens, tickets }: { readonly tokens: Tokens | undefined; readonly tickets: Pick<TicketOffice, 'void'> },
  students: readonly LinkOf[],
): Promise<void> {
  if (tokens === undefined) return
  const all = await tokens.list()
  const links = students.flatMap((student) => linksOf(student, all))
  await revokeAll(tokens, tickets, links)
}
