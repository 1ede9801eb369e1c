import { isDeepStrictEqual } from 'node:util'
import type { LinkAgent } from '../../../../src/host-agent.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { ApiError, badRequest, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import type {
  DirectLink,
  DirectLinkChanges,
  DirectLinkJoin,
  DirectLinkJoined,
  LinkPort,
  LinkPorts,
  LinkSettings,
} from '../../../../src/model/direct-link.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { isLinkable } from '../../../../src/model/kinds/node.ts'
import type { LinkNio } from '../../../../src/model/schema/nio.ts'
import type { JoinedLink } from '../../keeper/protocol/protocol.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { type OpenProject, revertLinks } from '../projects/open-project.ts'
import type { StoredLink } from '../projects/project-record.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, unknownState } from './keeper-link.ts'
import { lineOfPort } from './line.ts'
import { isSamePorts, keyOf, keysOf, nameOf, nodeKeyOf } from './link-ports.ts'
import { LinkStates } from './link-states.ts'
import { byKey, LinkViews } from './link-views.ts'
import { absent, compiled, LinkWirer } from './link-wirer.ts'
import type { NodeTable } from './node-table.ts'
import { hasCarrier } from './record.ts'
import { lportOf, ownerOf, parsePortName, requirePort, slotOf } from './slots.ts'
import { bridgePortOf, PortWirer } from './wiring.ts'

export interface DirectLinksOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly table: NodeTable
  /** An open project that is not being closed; 404, 409. */
  readonly project: (projectId: string) => Promise<OpenProject>
  readonly emit: (project: OpenProject, payload: EventPayload) => void
}

/**
 * The direct links of projects. The record of the project has them; the slots of the ports show them as `nio_link`. Locks are taken
 * in this order: nodes by their keys, then the link.
 */
export class DirectLinks implements LinkAgent {
  readonly #options: DirectLinksOptions
  readonly #portWirer: PortWirer
  readonly #linkWirer: LinkWirer
  readonly #serial = new KeyedMutex()
  readonly #views = new LinkViews()
  readonly #states: LinkStates

  constructor(options: DirectLinksOptions) {
    this.#options = options
    const { keeper, ports, emit } = options
    this.#states = new LinkStates(async (project, links) => {
      const { ports } = await keeper.call('port.report', { keys: links.flatMap((link) => keysOf(link).ports) })
      const reports = byKey(ports)
      return links.map((link) => this.#views.state(project, link, reports))
    })
    this.#linkWirer = new LinkWirer(keeper, ports)
    this.#portWirer = new PortWirer({ keeper, ports, emit: ({ project }, payload) => emit(project, payload) })
  }

  async join(projectId: string, link_id: string, nodes: LinkPorts, settings: LinkSettings = {}): Promise<DirectLink> {
    const project = await this.#options.project(projectId)
    const [error] = await this.#join(project, [{ link_id, nodes, ...settings }])
    if (error != null) throw error
    // The caller keeps the answer: it must also learn of a later state that is the same as what it read last.
    this.#states.remove(projectId, link_id)
    return this.state(projectId, link_id)
  }

  async joinAll(projectId: string, links: readonly DirectLinkJoin[]): Promise<DirectLinkJoined[]> {
    const errors = await this.#join(await this.#options.project(projectId), links)
    return links.map(({ link_id }, index) => {
      const error = errors[index]
      return { link_id, error: error == null ? null : { message: error.message, status: error.status } }
    })
  }

  async update(projectId: string, linkId: string, changes: LinkSettings): Promise<DirectLink> {
    const project = await this.#options.project(projectId)
    await this.#options.table.lockAll(required(project, linkId).nodes.map(nodeKeyOf), async () => {
      project.requireUsable()
      const before = required(project, linkId)
      const link = { ...before, ...settingsOf(changes, before) }
      compiled(link)
      if (isDeepStrictEqual(link, before)) return
      await project.setLinks([[linkId, link]])
      this.#show(project, link)
      await this.joinPorts(project, linkId)
      await this.#emitState(project, link)
    })
    return this.state(projectId, linkId)
  }

  async remove(projectId: string, linkId: string): Promise<void> {
    const project = await this.#options.project(projectId)
    const keys = required(project, linkId).nodes.map(nodeKeyOf)
    await this.#options.table.lockAll(keys, () => {
      required(project, linkId)
      return this.#separate(project, linkId, null)
    })
  }

  async state(projectId: string, linkId: string): Promise<DirectLink> {
    const project = await this.#options.project(projectId)
    const link = required(project, linkId)
    const reporting = link.nodes.map((port) =>
      this.#options.keeper
        .call('port.report', { key: keyOf(port), fresh: true })
        .then(({ ports }) => ports)
        .catch(absent),
    )
    const reports = byKey((await Promise.all(reporting)).flat())
    return this.#views.view(project, link, reports)
  }

  async states(projectId: string): Promise<DirectLink[]> {
    const project = await this.#options.project(projectId)
    if (project.links.size === 0) return []
    const { ports } = await this.#options.keeper.call('port.report', {})
    const reports = byKey(ports)
    return [...project.links.values()].map((link) => this.#views.view(project, link, reports))
  }

  async changes(projectId: string, since?: string): Promise<DirectLinkChanges> {
    return this.#states.changes(await this.#options.project(projectId), since)
  }

  /** Enters the links in the record of a node that is opened: its ports show them. */
  adopt(node: EngineNode): void {
    for (const link of node.project.linksAt(node.key)) {
      if (link.detached !== undefined) continue
      for (const port of link.nodes) {
        if (nodeKeyOf(port) !== node.key) continue
        const slot = slotOf(node, nameOf(port))
        if (slot.nio === null || slot.nio.type === 'nio_link') slot.nio = nioOf(link)
        // A service was killed after a NIO took the port, and before it detached the link.
        else node.project.links.set(link.link_id, { ...link, detached: takenOver(node, nameOf(port)) })
      }
    }
    for (const { udp_ports, nodes } of node.project.linksAt(node.key))
      for (const [index, port] of nodes.entries()) {
        const lport = udp_ports?.[index]
        if (lport !== undefined && nodeKeyOf(port) === node.key)
          this.#options.ports.adopt('udp', lport, ownerOf(node, nameOf(port)))
      }
  }

  /** Whether a link of a keeper belongs to a project. */
  isKnown({ link_id, ports }: Pick<JoinedLink, 'link_id' | 'ports'>): boolean {
    const node = this.#options.table.get(ports[0].split('/')[0] ?? '')
    const link = node?.project.links.get(link_id)
    return link !== undefined && link.detached === undefined
  }

  /**
   * Joins the ports of a link in the keepers: directly within one keeper, by a pair of UDP ports between two keepers. A closed port is
   * joined when it opens.
   */
  joinPorts(project: OpenProject, linkId: string): Promise<void> {
    return this.#serial.run(linkId, async () => {
      const link = project.links.get(linkId)
      if (link === undefined || link.detached !== undefined) return
      await this.#linkWirer.join(project, link)
    })
  }

  /** Detaches the link of a port that has another NIO or no longer exists. The caller holds the lock of the node. */
  async detach(node: EngineNode, nio: LinkNio, why: string): Promise<void> {
    await this.#separate(node.project, nio.link_id, why)
  }

  /** Removes the links of a node that is deleted. */
  async removeOf(node: EngineNode): Promise<void> {
    for (const { link_id } of node.project.linksAt(node.key)) await this.#separate(node.project, link_id, null)
  }

  /** Removes the links of a closed project from the keepers; the record of the project keeps them. */
  async close(project: OpenProject): Promise<void> {
    await Promise.all(
      [...project.links.values()].map((link) => this.#linkWirer.takeApart(link).catch(ignore(laterText))),
    )
    for (const id of project.links.keys()) this.#views.forget(id)
    this.#states.forget(project.id)
  }

  async #join(project: OpenProject, wanted: readonly DirectLinkJoin[]): Promise<(ApiError | null)[]> {
    const before = wanted.flatMap(({ link_id }) => project.links.get(link_id)?.nodes ?? [])
    const keys = [...before, ...wanted.flatMap(({ nodes }) => nodes)].map(nodeKeyOf)
    return this.#options.table.lockAll(keys, async () => {
      project.requireUsable()
      await using revert = revertLinks()
      const made = new Set<string>()
      const changed: StoredLink[] = []
      const results = wanted.map(() => null as ApiError | null)
      for (const [index, link] of wanted.entries()) {
        try {
          const stored = await this.#checked(project, link)
          if (isDeepStrictEqual(stored, project.links.get(stored.link_id))) continue
          if (!project.links.has(stored.link_id)) made.add(stored.link_id)
          const detached = await this.#clear(project, stored)
          // The next one of the list sees it.
          project.enterLinks(
            [...detached, stored].map((next) => [next.link_id, next] as const),
            revert,
          )
          changed.push(stored)
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
          results[index] = error
        }
      }
      if (changed.length > 0) await project.saveLinks()
      revert.commit()
      for (const link of changed) this.#show(project, link)
      const joined = await Promise.allSettled(
        wanted.map(async ({ link_id }, index) => {
          if (results[index] !== null) return
          await this.#openBridgePorts(project, link_id)
          await this.joinPorts(project, link_id)
        }),
      )
      for (const [index, it] of joined.entries()) {
        if (it.status === 'fulfilled') continue
        if (!(it.reason instanceof ApiError)) throw it.reason
        results[index] = it.reason
        const { link_id = '' } = wanted[index] ?? {}
        if (made.has(link_id)) await this.#separate(project, link_id, null).catch(ignore(laterText))
      }
      for (const link of changed) if (project.links.has(link.link_id)) await this.#emitState(project, link)
      return results
    })
  }

  /** Ports of switches are open only when something is linked to them. */
  async #openBridgePorts(project: OpenProject, linkId: string): Promise<void> {
    for (const port of project.links.get(linkId)?.nodes ?? []) {
      const node = project.nodes.get(nodeKeyOf(port))
      if (node === undefined || bridgePortOf(node, nameOf(port)) === undefined) continue
      await this.#portWirer.open(node, nameOf(port), slotOf(node, nameOf(port)))
    }
  }

  /** The record of a requested link; 400, 404, 409. */
  async #checked(project: OpenProject, { link_id, nodes, ...settings }: DirectLinkJoin): Promise<StoredLink> {
    const ends = await Promise.all(nodes.map((port) => this.#end(project, port)))
    const [a, b] = ends as [End, End]
    if (a.node === b.node && a.name === b.name) throw badRequest('nodes: a port cannot be linked to itself')
    if (a.line !== b.line) {
      throw conflict(
        `nodes: ${a.node.record.name} ${a.name} is ${a.line === 'serial' ? 'a serial' : 'an Ethernet'} port, ` +
          `${b.node.record.name} ${b.name} is ${b.line === 'serial' ? 'a serial' : 'an Ethernet'} port: both must have the same type`,
      )
    }
    const before = project.links.get(link_id)
    const [first, second] = ends.map(({ port }) => port) as [LinkPort, LinkPort]
    const udp = before !== undefined && isSamePorts(before.nodes, [first, second]) ? before.udp_ports : undefined
    const link: StoredLink = {
      link_id,
      nodes: [first, second],
      ...settingsOf(settings, { filters_ab: {}, filters_ba: {}, suspend: false }),
      line: a.line,
      ...(udp !== undefined && { udp_ports: udp }),
    }
    compiled(link)
    return link
  }

  /** Checks that a port of a node can be linked; 400, 404, 409, 503. */
  async #end(project: OpenProject, given: LinkPort): Promise<End> {
    const port = { ...given, node_id: given.node_id.toLowerCase() }
    const { node_type, node_id } = port
    if (!isLinkable(node_type)) throw badRequest(`node_type: nodes of the kind ${node_type} cannot be linked`)
    const node = project.nodes.get(nodeKeyOf(port))
    if (node === undefined || this.#options.table.get(node.key) !== node)
      throw notFound(`nodes: the project has no ${node_type} node ${node_id}`, { code: 'no-such-node' })
    if (node.unknownReason !== undefined) throw unknownState(new Error(node.unknownReason))
    node.requireUnsealed()
    const at = { adapter: port.adapter_number, port: port.port_number }
    const name = requirePort(node, at)
    await node.kind.wiring?.requireFree?.(node, at)
    return { node, port, name, line: lineOfPort(node, at) }
  }

  /** Removes the NIOs and links of the ports of a new link; returns the other links that this detaches. */
  async #clear(project: OpenProject, link: StoredLink): Promise<StoredLink[]> {
    const before = project.links.get(link.link_id)
    const detached: StoredLink[] = []
    if (before !== undefined && !isSamePorts(before.nodes, link.nodes)) {
      await this.#serial.run(link.link_id, () => this.#linkWirer.takeApart(before))
      this.#unshow(project, before)
    }
    for (const port of link.nodes) {
      const node = project.nodes.get(nodeKeyOf(port))
      if (node === undefined) continue
      const [name, slot] = [nameOf(port), slotOf(node, nameOf(port))]
      const { nio } = slot
      if (nio === null || (nio.type === 'nio_link' && nio.link_id === link.link_id)) continue
      slot.nio = null
      if (nio.type === 'nio_link') {
        const other = project.links.get(nio.link_id)
        if (other === undefined) continue
        await this.#serial.run(nio.link_id, () => this.#linkWirer.takeApart(other))
        this.#unshow(project, other)
        const { udp_ports: _, ...rest } = other
        detached.push({ ...rest, detached: `${node.record.name} ${name}: the port is used by another link` })
        await this.#emitState(project, detached.at(-1) as StoredLink)
        continue
      }
      const lport = lportOf(nio)
      if (lport !== undefined) {
        this.#options.ports.release('udp', lport, ownerOf(node, name))
        await project.forgetUdpPorts([lport]).catch((error: unknown) => node.unsaved(error))
      }
      await this.#options.keeper.call('nio.detach', { key: keyOf(port) }).catch(absent)
      await node.save()
      const message = `${node.record.name}: what was attached to port ${name} (${nio.type}) was replaced by a link`
      this.#options.emit(project, { type: 'log.warning', message })
    }
    return detached
  }

  /** Separates the ports of a link. `why`: the link stays in the record, detached; null: it is removed. */
  #separate(project: OpenProject, linkId: string, why: string | null): Promise<void> {
    return this.#serial.run(linkId, async () => {
      const found = project.links.get(linkId)
      if (found === undefined || (why !== null && found.detached !== undefined)) return
      if (found.detached === undefined) await this.#linkWirer.takeApart(found)
      this.#unshow(project, found)
      const { udp_ports: _, ...link } = found
      const left = why === null ? null : { ...link, detached: why }
      await project.setLinks([[linkId, left]])
      if (left === null) {
        this.#views.forget(linkId)
        this.#states.remove(project.id, linkId)
      }
      await this.#emitState(project, left ?? { ...link, detached: 'The link was removed' }, left === null)
    })
  }

  /** Has the ports of a link show it. */
  #show(project: OpenProject, link: StoredLink): void {
    this.#setNio(project, link, nioOf(link))
  }

  /** Has its ports no longer show it, and releases its UDP ports. */
  #unshow(project: OpenProject, link: StoredLink): void {
    this.#setNio(project, link, null)
    this.#linkWirer.releaseUdp(project, link)
  }

  #setNio(project: OpenProject, link: StoredLink, nio: LinkNio | null): void {
    for (const port of link.nodes) {
      const node = project.nodes.get(nodeKeyOf(port))
      const slot = node?.record.ports[nameOf(port)]
      if (node === undefined || (slot === undefined && nio === null)) continue
      const there = slot?.nio
      // A port that something else has taken is left alone.
      if (there?.type === 'nio_link' ? there.link_id !== link.link_id : there != null) continue
      slotOf(node, nameOf(port)).nio = nio
      if (node.kind.wiring?.lineOf !== undefined) slotOf(node, nameOf(port)).line = link.line
      const { control, wiring } = node.kind
      const at = parsePortName(nameOf(port))
      if (node.status === 'stopped' || (control === undefined && wiring?.disconnect === undefined)) continue
      this.#options.table.queue(node.key, async () => {
        if (node.status === 'stopped') return
        await control?.setCarrier(node, at, hasCarrier(node.record, at))
        if (node.record.ports[nameOf(port)]?.nio == null) await wiring?.disconnect?.(node, at)
      })
    }
  }

  async #emitState(project: OpenProject, link: StoredLink, isRemoved = false): Promise<void> {
    const view = this.#views.view(project, link)
    this.#options.emit(project, { type: isRemoved ? 'link.deleted' : 'link.updated', link: view })
  }
}

interface End {
  readonly node: EngineNode
  readonly port: LinkPort
  readonly name: string
  readonly line: StoredLink['line']
}

/** 404. */
function required(project: OpenProject, linkId: string): StoredLink {
  const link = project.links.get(linkId)
  if (link !== undefined) return link
  throw notFound(`link_id: the project has no direct link ${linkId}; GET .../links lists its direct links`)
}

const settingsOf = (
  { filters_ab, filters_ba, suspend }: LinkSettings,
  now: Pick<StoredLink, 'filters_ab' | 'filters_ba' | 'suspend'>,
) => ({
  filters_ab: filters_ab ?? now.filters_ab,
  filters_ba: filters_ba ?? now.filters_ba,
  suspend: suspend ?? now.suspend,
})

const nioOf = ({ link_id, suspend }: StoredLink): LinkNio => ({
  type: 'nio_link',
  link_id,
  ...(suspend && { suspend }),
})

/** Why a link lost a port to a NIO. */
export const takenOver = (node: EngineNode, name: string): string =>
  `A NIO that was attached to ${node.record.name}, port ${name}, has taken over the port: join the link again or remove it`

const laterText = 'the keeper does not answer, or has ended: `reconcile` runs when it answers again'
