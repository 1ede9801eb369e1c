import { hostOfAddress } from '../client/address.ts'
import { badRequest, conflict } from '../errors/api-error.ts'
import { type ComputeCreate, type ComputeRecord, type ComputeUpdate, tunnelled } from '../model/compute.ts'
import type { ComputeHello } from '../model/tunnel.ts'

/** What is kept of a compute that was asked for. */
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

/** What is kept of a compute that has joined, under a name that is not taken. */
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

/** The record with these changes; what is absent or null stays. Where a compute is that has joined is its own affair. */
export function changedRecord(
  record: ComputeRecord,
  { name, protocol, host, port, user, password, ...given }: ComputeUpdate,
): ComputeRecord {
  const share = shareOf(given, record)
  if (record.protocol === tunnelled) {
    if (protocol != null && protocol !== tunnelled) throw conflict('protocol: the compute has joined by itself')
    return { ...record, name: name ?? record.name, ...share }
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

type Share = Pick<ComputeUpdate, 'accepts_projects' | 'weight'>

/** Whether the connection to a compute is not concerned, so that who empties it does not cut its labs off. */
export function isOnlyShare(changes: ComputeUpdate): boolean {
  const given = Object.entries(changes).flatMap(([name, value]) =>
    value == null || name === 'compute_id' ? [] : [name],
  )
  return given.length > 0 && given.every((name) => name === 'accepts_projects' || name === 'weight')
}

/** Only what is not as usual is kept. */
function shareOf(
  { accepts_projects, weight }: Share,
  before: Share = {},
): Pick<ComputeRecord, 'accepts_projects' | 'weight'> {
  const accepts = accepts_projects ?? before.accepts_projects ?? true
  const share = weight ?? before.weight ?? 1
  return { ...(!accepts && { accepts_projects: false }), ...(share !== 1 && { weight: share }) }
}

/** Without a user there is nothing that a password is for. */
export function credentials(user: string, password: string | null): Pick<ComputeRecord, 'user' | 'password'> {
  const name = user.trim()
  return name === '' ? { user: null, password: null } : { user: name, password }
}
