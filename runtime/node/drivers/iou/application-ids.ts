import { netioDirectory } from '../../dataplane/fast/netio-directory.ts'
import { isNetioTaken } from '../../dataplane/fast/netio-socket.ts'
import { type Libc, loadLibc } from '../../os/system/libc.ts'
import { freeApplicationId, netmapPeerOf } from './netmap.ts'

/**
 * The application ids of this host. All IOU programs of a user share one directory of sockets, so ids are unique over all projects.
 * Ids of programs that this service did not start are known only while they run.
 */
export class ApplicationIds {
  readonly #holders = new Map<number, string>()
  readonly #isInUse: (id: number) => boolean

  constructor(isInUse = isInUseOnHost) {
    this.#isInUse = isInUse
  }

  /** The id of the node, else the wanted id if it is free, else the lowest free one. 409 when all are taken. */
  allocate(key: string, wanted = 0): number {
    const known = this.of(key)
    if (known !== undefined) return known
    // A program may use the wanted id: that of the node itself.
    const id = wanted > 0 && !this.#holders.has(wanted) ? wanted : this.#free()
    this.#holders.set(id, key)
    return id
  }

  /** Gives the node another id; 409 when all are taken. */
  change(key: string): number {
    const before = this.of(key)
    const id = this.#free()
    if (before !== undefined) this.#holders.delete(before)
    this.#holders.set(id, key)
    return id
  }

  of(key: string): number | undefined {
    for (const [id, holder] of this.#holders) if (holder === key) return id
    return undefined
  }

  release(key: string): void {
    const id = this.of(key)
    if (id !== undefined) this.#holders.delete(id)
  }

  #free(): number {
    return freeApplicationId(this.#holders.keys(), this.#isInUse)
  }
}

let libc: Libc | undefined

const isInUseOnHost = (id: number): boolean => hasInstance(id) || hasInstance(netmapPeerOf(id))

/** Whether a program of this user has the application id now. */
export function hasInstance(id: number): boolean {
  try {
    libc ??= loadLibc()
    return isNetioTaken(libc, netioDirectory(), id)
  } catch {
    // Without libc no router starts, and the start reports that.
    return false
  }
}
