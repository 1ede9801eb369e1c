import { isDeepStrictEqual } from 'node:util'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { compileFilters } from '../../dataplane/filters/compile.ts'
import type { JoinedLink, SwitchNio } from '../../keeper/protocol/protocol.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { StoredLink } from '../projects/project-record.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import { keysOf } from './link-ports.ts'

/** Links in one message to a keeper. */
const linksAtOnce = 1000

/** Links that are sent to a keeper in one message. */
interface Batch {
  readonly links: JoinedLink[]
  readonly sent: Promise<void>
}

/** Wires direct links in the keepers: within one by the link itself, between two by a pair of UDP ports. Callers hold the lock of the link. */
export class LinkWirer {
  readonly #keeper: KeeperLink
  readonly #ports: PortAllocator
  readonly #batches = new Map<object, Batch>()

  constructor(keeper: KeeperLink, ports: PortAllocator) {
    this.#keeper = keeper
    this.#ports = ports
  }

  /** Joins the ports of a link that are open. */
  async join(project: OpenProject, link: StoredLink): Promise<void> {
    const { nodes, ports } = keysOf(link)
    if (!this.#keeper.canJoin(...nodes)) return this.#pair(project, link)
    await this.#send(nodes[0], { link_id: link.link_id, ports, ...compiled(link) }).catch(refused)
    if (link.udp_ports === undefined) return
    this.releaseUdp(project, link)
    const { udp_ports: _, ...rest } = link
    await project.setLinks([[link.link_id, rest]])
  }

  /** Removes a link from its keepers. */
  async takeApart(link: StoredLink): Promise<void> {
    const { ports } = keysOf(link)
    if (link.udp_ports !== undefined) {
      await Promise.all(ports.map((key) => this.#keeper.call('nio.detach', { key }).catch(absent)))
      return
    }
    await this.#keeper.call('link.remove', { links: [{ link_id: link.link_id, ports }] }).catch((error: unknown) => {
      // A keeper that does not know links has none.
      if (keeperErrorCode(error) === undefined) throw error
    })
  }

  /** Releases the UDP ports of a link, if it has any. */
  releaseUdp(project: OpenProject, link: StoredLink): void {
    for (const [index, key] of keysOf(link).ports.entries())
      this.#ports.release('udp', link.udp_ports?.[index] ?? 0, `${project.id}/${key}`)
  }

  /** Joins ports of two keepers. */
  async #pair(project: OpenProject, link: StoredLink): Promise<void> {
    const { filters_ab, filters_ba, suspend } = compiled(link)
    const keys = keysOf(link)
    // One end has the filters of both directions: a keeper of an earlier version knows only filters for both.
    const full = keys.nodes.findIndex((key) => this.#keeper.canJoin(key, key))
    if (full < 0 && !isDeepStrictEqual(filters_ab, filters_ba)) {
      throw conflict('The keepers of the nodes are of an earlier version, which has no filters for one direction')
    }
    const udp = link.udp_ports ?? [
      await this.#allocate(project, keys.ports[0]),
      await this.#allocate(project, keys.ports[1]),
    ]
    if (link.udp_ports === undefined) await project.setLinks([[link.link_id, { ...link, udp_ports: udp }]])
    const attached = keys.ports.map((key, index) => {
      const [out, into] = index === 0 ? [filters_ab, filters_ba] : [filters_ba, filters_ab]
      const stages =
        index === full ? { filters: out, filters_in: into } : { filters: full < 0 && index === 0 ? out : [] }
      const [lport, rport] = index === 0 ? udp : [udp[1], udp[0]]
      const nio: SwitchNio = { type: 'udp', lport, rhost: '127.0.0.1', rport, suspend, ...stages }
      return this.#keeper.call('nio.attach', { key, nio }).catch(absent)
    })
    await Promise.all(attached).catch(refused)
  }

  #allocate(project: OpenProject, port: string): Promise<number> {
    return this.#ports.allocate('udp', `${project.id}/${port}`)
  }

  /** Sends all links that are placed at the same time in one message. */
  #send(node: string, link: JoinedLink): Promise<void> {
    const holder = this.#keeper.holderOf(node)
    const waiting = this.#batches.get(holder)
    if (waiting !== undefined && waiting.links.length < linksAtOnce) {
      waiting.links.push(link)
      return waiting.sent
    }
    const links = [link]
    const sent = new Promise<void>((resolve, reject) => {
      setImmediate(() => {
        if (this.#batches.get(holder)?.links === links) this.#batches.delete(holder)
        this.#keeper.call('link.join', { links }).then(() => resolve(), reject)
      })
    })
    this.#batches.set(holder, { links, sent })
    return sent
  }
}

/** The filters as the switch takes them; 400. */
export function compiled({ filters_ab, filters_ba, suspend, line }: StoredLink) {
  return { suspend, filters_ab: compileFilters(filters_ab, line), filters_ba: compileFilters(filters_ba, line) }
}

/** For `catch`: a port that is not open has no link. */
export function absent(error: unknown): [] {
  if (keeperErrorCode(error) !== 'unknown_key') throw error
  return []
}

function refused(error: unknown): never {
  if (keeperErrorCode(error) === undefined) throw error
  throw conflict(`The link cannot be joined: ${(error as Error).message}`, { cause: error as Error })
}
