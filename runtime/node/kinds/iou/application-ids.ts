import { netioDirectory } from '../../switch/fast/netio-directory.ts'
import { isNetioTaken } from '../../switch/fast/netio-socket.ts'
import { type Libc, loadLibc } from '../../system/libc.ts'
import { freeApplicationId, netmapPeerOf } from './netmap.ts'

/**
 * The application ids of this host: the programs of one user meet in one directory, whatever project they are of. Those of other
 * services, and of whatever else runs IOU, are known only while they are in use.
 */
export class ApplicationIds {
  readonly #holders = new Map<number, string>()
  readonly #isInUse: (id: number) => boolean

  constructor(isInUse = isInUseOnHost) {
    this.#isInUse = isInUse
  }

  /** The wanted id when nobody has it, else the lowest free one; the one that the node has already stays. 409 when all are taken. */
  take(key: string, wanted = 0): number {
    const known = this.of(key)
    if (known !== undefined) return known
    // What the node had before may be in use by its own program.
    const id = wanted > 0 && !this.#holders.has(wanted) ? wanted : this.#free()
    this.#holders.set(id, key)
    return id
  }

  /** Another id than the node has. 409. */
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

/** Whether a program of this user is the instance of that id now. */
export function hasInstance(id: number): boolean {
  return isTaken(id)
}

/** The same, or the bridge of one. */
const isInUseOnHost = (id: number): boolean => hasInstance(id) || isTaken(netmapPeerOf(id))

function isTaken(id: number): boolean {
  try {
    libc ??= loadLibc()
    return isNetioTaken(libc, netioDirectory(), id)
  } catch {
    // Where that cannot be asked no router starts, and the start says why.
    return false
  }
}
