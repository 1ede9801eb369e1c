import type { ComputeCreate, ComputeRecord, ComputeUpdate } from '../model/compute.ts'
import { hostOf } from './address.ts'

/** What is kept of a compute that was asked for. */
export function recordOf({ compute_id, name, protocol, host, port, user, password }: ComputeCreate): ComputeRecord {
  return {
    compute_id: compute_id ?? crypto.randomUUID(),
    name: name ?? null,
    protocol,
    host: hostOf(host),
    port,
    ...credentials(user ?? '', password ?? null),
  }
}

/** The record with these changes; what is absent or null stays. */
export function changed(
  record: ComputeRecord,
  { name, protocol, host, port, user, password }: ComputeUpdate,
): ComputeRecord {
  return {
    compute_id: record.compute_id,
    name: name ?? record.name,
    protocol: protocol ?? record.protocol,
    host: host == null ? record.host : hostOf(host),
    port: port ?? record.port,
    ...credentials(user ?? record.user ?? '', password ?? record.password),
  }
}

/** Without a user there is nothing that a password is for. */
export function credentials(user: string, password: string | null): Pick<ComputeRecord, 'user' | 'password'> {
  const name = user.trim()
  return name === '' ? { user: null, password: null } : { user: name, password }
}
