import { hostOfAddress } from '../../compute/remote/address.ts'
import { badRequest, conflict } from '../../lib/errors/api-error.ts'
import { omit } from '../../lib/omit.ts'
import { type ComputeCreate, type ComputeRecord, type ComputeUpdate, tunnelled } from '../../model/compute.ts'
import type { ComputeHello } from '../../model/tunnel.ts'

/** The saved record of a registered compute. */
export function computeRecordOf({
  compute_id,
  name,
  protocol,
  host,
  port,
  user,
  password,
  ...share
}: ComputeCreate): ComputeRecord {
  return {
    compute_id: compute_id ?? crypto.randomUUID(),
    name: name ?? null,
    protocol,
    host: hostOfAddress(host),
    port,
    ...credentials(user ?? '', password ?? null),
    ...shareOf(share),
  }
}

/** The saved record of a joined compute, with a free name. */
export const joinedRecord = (
  { compute_id, name }: ComputeHello,
  isTaken: (name: string) => boolean,
): ComputeRecord => ({
  compute_id,
  name: isTaken(name) ? `${name.slice(0, 200)} (${compute_id.slice(0, 8)})` : name,
  protocol: tunnelled,
  host: name,
  port: 0,
  ...credentials('', null),
})

/** The record with these changes; absent and null members stay. A joined compute has no address to change. */
export function changedRecord(
  record: ComputeRecord,
  { name, protocol, host, port, user, password, ...given }: ComputeUpdate,
): ComputeRecord {
  const share = shareOf(given, record)
  if (record.protocol === tunnelled) {
    if (protocol != null && protocol !== tunnelled) throw conflict('protocol: the compute has joined by itself')
    return { ...omit(record, 'accepts_projects', 'weight', 'labels'), name: name ?? record.name, ...share }
  }
  if (protocol === tunnelled)
    throw badRequest(`protocol: a compute is "${tunnelled}" only when it has joined by itself`)
  if (port === 0) throw badRequest('port: expected an integer from 1 to 65535, got 0')
  return {
    compute_id: record.compute_id,
    name: name ?? record.name,
    protocol: protocol ?? record.protocol,
    host: host == null ? record.host : hostOfAddress(host),
    port: port ?? record.port,
    ...credentials(user ?? record.user ?? '', password ?? record.password),
    ...share,
  }
}

type Share = Pick<ComputeUpdate, 'accepts_projects' | 'weight' | 'labels'>
const shares: ReadonlySet<string> = new Set(['accepts_projects', 'weight', 'labels'] satisfies (keyof Share)[])

/** Whether the changes leave the connection alone: an update that drains a compute must not cut off its labs. */
export function isOnlyShare(changes: ComputeUpdate): boolean {
  const given = Object.entries(changes).flatMap(([name, value]) =>
    value == null || name === 'compute_id' ? [] : [name],
  )
  return given.length > 0 && given.every((name) => shares.has(name))
}

/** Only values other than the default are saved. */
function shareOf(
  { accepts_projects, weight, labels }: Share,
  before: Share = {},
): Pick<ComputeRecord, 'accepts_projects' | 'weight' | 'labels'> {
  const accepts = accepts_projects ?? before.accepts_projects ?? true
  const share = weight ?? before.weight ?? 1
  const own = labels ?? before.labels ?? []
  return {
    ...(!accepts && { accepts_projects: false }),
    ...(share !== 1 && { weight: share }),
    ...(own.length > 0 && { labels: own }),
  }
}

/** Without a user the password is dropped. */
export function credentials(user: string, password: string | null): Pick<ComputeRecord, 'user' | 'password'> {
  const name = user.trim()
  return name === '' ? { user: null, password: null } : { user: name, password }
}
