import { readFile } from 'node:fs/promises'
import { limitsText } from '../../../src/client/limits-text.ts'
import type { AccessToken } from '../../../src/client/patchbay.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { type ParsedSshKey, parseSshKey } from '../../../src/model/access/ssh-key.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { tokenCreating } from './command-flags.ts'
import { secondsOf } from './durations.ts'
import { CommandError, exits, notFound, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { timeText } from './times.ts'

/** `patchbay tokens ls`: the tokens of a service, without their secrets. */
export async function tokensLs({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const tokens = await client.call('GET /v2/tokens', { signal })
  return {
    json: { server: client.server, tokens },
    async text() {
      if (tokens.length === 0) return `No tokens on ${client.server}; "patchbay tokens create NAME" creates one`
      const { tableOf } = await import('./table.ts')
      const rows = tokens.map((it) => [it.name, it.token_id, rightsOf(it), endOf(it), `...${it.last_characters}`])
      return tableOf(['TOKEN', 'ID', 'RIGHTS', 'ENDS', 'SECRET'], rows)
    },
  }
}

const rightsOf = ({ purpose, role, projects, limits, compute_id }: AccessToken): string => {
  if (purpose === 'join') return `join${compute_id === undefined ? '' : ` as ${compute_id}`}`
  const rights = projects === undefined ? role : `${role} of ${projects.join(', ')}`
  return limits === undefined || Object.keys(limits).length === 0
    ? rights
    : `${rights}, at most ${limitsText(limits)} a lab`
}

const endOf = ({ expires_at }: AccessToken): string => (expires_at === null ? 'never' : timeText(expires_at))

/** `patchbay tokens create NAME`: makes a token; standard output has the token alone. */
export async function tokensCreate({
  args: [name = ''],
  flags,
  signal,
}: CommandInput<typeof tokenCreating>): Promise<CommandOutcome> {
  if (flags.join && (flags.role !== undefined || flags.lab.length > 0))
    throw wrongArguments('--join excludes --role and --lab', 'omit --join to create a token for a client')
  if (!flags.join && flags.compute !== undefined) throw wrongArguments('--compute needs --join')
  const seconds = flags.expires === undefined ? undefined : secondsOf('--expires', flags.expires, 0)
  const limits = limitsOf(flags)
  if (flags.join && limits !== undefined) throw wrongArguments('--join excludes --nodes, --running and --ram')
  const client = await clientOf(flags)
  const { token, ...made } = await client.call('POST /v2/tokens', {
    body: {
      name,
      ...(flags.join ? { purpose: 'join' } : { role: roleOf(flags.role) }),
      ...(flags.compute !== undefined && { compute_id: flags.compute }),
      ...(flags.lab.length > 0 && { projects: [...flags.lab] }),
      ...(limits !== undefined && { limits }),
      ...(seconds !== undefined && { expires_in_s: Math.max(1, Math.round(seconds)) }),
    },
    signal,
  })
  return {
    json: { token, ...made },
    async text() {
      const { shown } = await import('./table.ts')
      const end = made.expires_at === null ? '' : `, until ${endOf(made)}`
      process.stderr.write(
        `${shown(`Created the token ${made.name} (${rightsOf(made)}${end}). It cannot be shown again:`)}\n`,
      )
      return shown(token)
    },
  }
}

type Limits = NonNullable<AccessToken['limits']>
/** The flag of each limit. */
const limitFlags = { max_nodes: 'nodes', max_running: 'running', max_ram_mb: 'ram' } as const satisfies Readonly<
  Record<keyof Limits, string>
>

/** The limits of a token, as flags say; undefined without one. CommandError 64. */
export function limitsOf(
  flags: Readonly<Record<(typeof limitFlags)[keyof Limits], string | undefined>>,
): Limits | undefined {
  const limits = Object.entries(limitFlags).flatMap(([member, flag]) => {
    const text = flags[flag]
    if (text === undefined) return []
    if (/^\d{1,8}$/.test(text)) return [[member, Number(text)] as const]
    throw wrongArguments(`--${flag}: expected a number, got ${JSON.stringify(text)}`)
  })
  return limits.length === 0 ? undefined : Object.fromEntries(limits)
}

const roles = ['read', 'operate', 'admin'] as const
const roleOf = (word: string | undefined) => roles.find((role) => role === word) ?? 'operate'

/** `patchbay tokens rm TOKEN...`: revokes tokens. */
export async function tokensRm({ args, flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const all = await client.call('GET /v2/tokens', { signal })
  const found = args.map((word) => tokenNamed(word, all, client.server))
  for (const { token_id } of found) await client.call('DELETE /v2/tokens/{token_id}', { params: { token_id }, signal })
  return {
    json: { revoked: found },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Revoked ${found.map(({ name }) => name).join(', ')}`)
    },
  }
}

/** `patchbay tokens key add TOKEN FILE`, `ls [TOKEN]`, `rm TOKEN KEY`: the public keys with which the owner of a token logs in by SSH. */
export async function tokensKey({
  args: [action = '', word, what],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  if (action === 'ls' ? what !== undefined : what === undefined || word === undefined)
    throw wrongArguments(
      `tokens key ${action}: expected ${{ add: 'TOKEN FILE', ls: 'at most one TOKEN', rm: 'TOKEN KEY' }[action]}`,
    )
  const key = action === 'add' ? await keyIn(what ?? '') : undefined
  const client = await clientOf(flags)
  const all = await client.call('GET /v2/tokens', { signal })
  const token = word === undefined ? undefined : tokenNamed(word, all, client.server)
  const { shown, tableOf } = await import('./table.ts')
  if (token === undefined || action === 'ls') {
    const found = (token === undefined ? all : [token]).flatMap(({ token_id, name, ssh_keys = [] }) =>
      ssh_keys.map((it) => ({ token_id, token: name, ...it })),
    )
    const rows = found.map((it) => [it.token, it.key_id, it.fingerprint, it.comment, timeText(it.added_at)])
    return {
      json: { server: client.server, ssh_keys: found },
      text: () =>
        rows.length === 0
          ? 'No SSH keys; "patchbay tokens key add TOKEN FILE" adds one'
          : tableOf(['TOKEN', 'KEY', 'FINGERPRINT', 'COMMENT', 'ADDED'], rows),
    }
  }
  const { token_id, name } = token
  if (key !== undefined) {
    const body = { public_key: `${key.public_key} ${key.comment}` }
    const added = await client.call('POST /v2/tokens/{token_id}/ssh_keys', { params: { token_id }, body, signal })
    return {
      json: { token_id, token: name, ...added },
      text: () =>
        shown(`The owner of ${added.fingerprint} logs in by SSH with the rights of ${name} (${rightsOf(token)})`),
    }
  }
  const removed = keyNamed(what ?? '', token)
  const params = { token_id, key_id: removed.key_id }
  await client.call('DELETE /v2/tokens/{token_id}/ssh_keys/{key_id}', { params, signal })
  return {
    json: { token_id, token: name, ...removed },
    text: () => shown(`Removed ${removed.fingerprint} from ${name}`),
  }
}

/** The public key in a file. CommandError 3: a private key, say, is not sent to the service. */
async function keyIn(file: string): Promise<ParsedSshKey> {
  try {
    return await parseSshKey(await readFile(file, 'utf8'))
  } catch (error) {
    const message = error instanceof ApiError ? error.message.replace(/^public_key: /, '') : reasonOf(error)
    throw new CommandError(exits.wrong, [{ file, message }])
  }
}

/** The key of a token that a word names, by its id, fingerprint or comment. CommandError 1. */
function keyNamed(word: string, { name, ssh_keys = [] }: AccessToken): NonNullable<AccessToken['ssh_keys']>[number] {
  const found = ssh_keys.filter((it) => [it.key_id, it.fingerprint, it.comment].includes(word))
  const [one] = found
  if (one !== undefined && found.length === 1) return one
  const message = `${found.length === 0 ? 'no key' : 'more than one key'} of ${name} is ${JSON.stringify(word)}`
  throw new CommandError(exits.failed, [{ message, hint: `"patchbay tokens key ls ${name}" lists them` }])
}

/** The token that a word names, by id or name: several may have one name. CommandError 1. */
function tokenNamed(word: string, all: readonly AccessToken[], server: string): AccessToken {
  const found = all.filter((it) => it.token_id === word || it.name === word)
  const [one] = found
  if (one !== undefined && found.length === 1) return one
  if (found.length > 1)
    throw new CommandError(exits.failed, [
      {
        message: `${found.length} tokens have the name ${JSON.stringify(word)}`,
        hint: `give an id: ${found.map((it) => it.token_id).join(', ')}`,
      },
    ])
  const names = all.map(({ name }) => name)
  const message = `there is no token ${JSON.stringify(word)} on ${server}`
  throw notFound(message, word, names, '"patchbay tokens ls" lists them')
}
