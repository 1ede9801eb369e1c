import type { RemoteCompute } from '../../compute/remote/remote-compute.ts'
import { conflict, notFound } from '../../lib/errors/api-error.ts'
import { counted } from '../../lib/text/counted.ts'
import { applianceId, type ComputeRecord, localId, maxComputes, tunnelled } from '../../model/compute.ts'
import type { LocalCompute } from './local-compute.ts'

/** `endpoint` and `join` are path segments in the place of an id. */
const reserved: ReadonlySet<string> = new Set([localId, applianceId, 'endpoint', 'join'])

/** The computes of a fleet by their case-insensitive ids, in the order of their registration. */
export class Computes {
  readonly local: LocalCompute | undefined
  readonly #remote = new Map<string, RemoteCompute>()
  readonly #max: () => number

  /** `max`: most computes; 0: no limit of their own. Read for every compute that is added. */
  constructor(local: LocalCompute | undefined, max: () => number = () => 0) {
    this.local = local
    this.#max = max
  }

  /** Without `local`. */
  get remote(): RemoteCompute[] {
    return [...this.#remote.values()]
  }

  get(id: string): RemoteCompute | undefined {
    return this.#remote.get(computeKey(id))
  }

  /** 404 for an unknown id. */
  find(id: string): RemoteCompute | LocalCompute {
    const found = computeKey(id) === localId ? this.local : this.get(id)
    if (found !== undefined) return found
    if (computeKey(id) === applianceId)
      throw notFound('compute_id: the appliance VM is not running', { code: 'no-such-compute' })
    throw notFound(`compute_id: there is no compute ${id}; GET /v2/computes lists the computes`, {
      code: 'no-such-compute',
    })
  }

  has(id: string): boolean {
    return computeKey(id) === localId ? this.local !== undefined : this.#remote.has(computeKey(id))
  }

  /** Whether the id of the compute still belongs to this object. */
  includes(compute: RemoteCompute): boolean {
    return this.get(compute.record.compute_id) === compute
  }

  add(compute: RemoteCompute): void {
    this.#remote.set(computeKey(compute.record.compute_id), compute)
  }

  remove(compute: RemoteCompute): void {
    this.#remote.delete(computeKey(compute.record.compute_id))
  }

  clear(): void {
    this.#remote.clear()
  }

  isTaken(name: string): boolean {
    return this.local?.name === name || this.remote.some((compute) => compute.name === name)
  }

  /** 409 when there are too many computes, or another compute has the name. */
  requireRoom({ name }: Pick<ComputeRecord, 'name'>): void {
    const max = Math.min(this.#max() || maxComputes, maxComputes)
    const { size } = this.#remote
    if (size >= max)
      throw conflict(`This organization is limited to ${counted(max, 'compute')} and has ${size}: delete one first`, {
        code: 'limit-reached',
      })
    if (name !== null && this.isTaken(name)) {
      throw conflict(`name: a compute ${JSON.stringify(name)} already exists`)
    }
  }

  /** Records of the computes with an address, by display name; with secrets. */
  registered(): ReadonlyMap<string, ComputeRecord> {
    const others = this.remote.filter(({ record }) => record.protocol !== tunnelled && !isReserved(record.compute_id))
    // The first compute of a name counts.
    return new Map(others.reverse().map(({ name, record }) => [name, record]))
  }
}

/** Whether clients may not register, change or delete a compute of that id. */
export const isReserved = (id: string): boolean => reserved.has(computeKey(id))

/** Ids are compared without regard to case. */
export const computeKey = (id: string): string => id.toLowerCase()
