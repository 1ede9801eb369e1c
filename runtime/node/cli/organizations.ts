import type { Organization } from '../../../src/client/patchbay.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { clientOf } from './client.ts'
import type { CommandInput, FlagValues, serviceFlags } from './command.ts'
import type { organizationCreating, organizationRemoving } from './command-flags.ts'
import { notFound, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay organizations ls`: the organizations of a gateway. */
export async function organizationsLs({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const organizations = await client.call('GET /v2/organizations', { signal })
  return {
    json: { server: client.server, organizations },
    async text() {
      const { tableOf } = await import('./table.ts')
      const rows = organizations.map((it) => [it.organization_id, it.name, limitsOf(it)])
      return tableOf(['ORGANIZATION', 'NAME', 'LIMITS'], rows)
    },
  }
}

function limitsOf({ max_projects, max_computes, requests_per_s }: Organization): string {
  const limits = [
    ...(max_projects > 0 ? [counted(max_projects, 'project')] : []),
    ...(max_computes > 0 ? [counted(max_computes, 'compute')] : []),
    ...(requests_per_s > 0 ? [`${counted(requests_per_s, 'request')}/s`] : []),
  ]
  return limits.length === 0 ? 'none' : limits.join(', ')
}

/** `patchbay organizations create ID`: makes one. */
export async function organizationsCreate({
  args: [organization_id = ''],
  flags,
  signal,
}: CommandInput<typeof organizationCreating>): Promise<CommandOutcome> {
  const body = { organization_id, ...membersOf(flags) }
  const client = await clientOf(flags)
  const made = await client.call('POST /v2/organizations', { body, signal })
  return outcomeOf(
    made,
    `Created ${organization_id}; next: PATCHBAY_ORGANIZATION=${organization_id} patchbay tokens create NAME --role admin`,
  )
}

/** `patchbay organizations set ID`: changes its name and limits. */
export async function organizationsSet({
  args: [organization_id = ''],
  flags,
  signal,
}: CommandInput<typeof organizationCreating>): Promise<CommandOutcome> {
  const body = membersOf(flags)
  if (Object.keys(body).length === 0) throw wrongArguments('nothing to change; set a flag such as --max-projects 20')
  const client = await clientOf(flags)
  const changed = await client.call('PUT /v2/organizations/{organization_id}', {
    params: { organization_id },
    body,
    signal,
  })
  return outcomeOf(changed, `Limits of ${organization_id}: ${limitsOf(changed)}`)
}

/** `patchbay organizations rm ID...`: deletes organizations, and revokes their tokens. */
export async function organizationsRm({
  args,
  flags,
  signal,
}: CommandInput<typeof organizationRemoving>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const query = { force: flags.force ? 'yes' : 'no' } as const
  const ids = (await client.call('GET /v2/organizations', { signal })).map((it) => it.organization_id)
  // Before anything is deleted: a wrong name would leave the ones after it.
  for (const word of args) {
    const message = `there is no organization ${JSON.stringify(word)} on ${client.server}`
    if (!ids.includes(word)) throw notFound(message, word, ids, '"patchbay organizations ls" lists them')
  }
  for (const organization_id of args)
    await client.call('DELETE /v2/organizations/{organization_id}', { params: { organization_id }, query, signal })
  return {
    json: { deleted: args },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Deleted ${args.join(', ')}`)
    },
  }
}

const outcomeOf = (organization: Organization, text: string): CommandOutcome => ({
  json: { organization },
  async text() {
    const { shown } = await import('./table.ts')
    return shown(text)
  },
})

type Flags = FlagValues<typeof organizationCreating>

function membersOf(flags: Flags) {
  const members = {
    max_projects: limitOf('max-projects', flags),
    max_computes: limitOf('max-computes', flags),
    requests_per_s: limitOf('requests-per-s', flags),
    name: flags.name,
  }
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<
    Pick<Organization, keyof typeof members>
  >
}

/** CommandError 64. */
function limitOf(flag: 'max-projects' | 'max-computes' | 'requests-per-s', flags: Flags): number | undefined {
  const text = flags[flag]
  if (text === undefined) return undefined
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw wrongArguments(`--${flag}: expected a number, or 0 for no limit, got ${JSON.stringify(text)}`)
}
