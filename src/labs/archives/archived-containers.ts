import { archivedContainer, interfacesPath } from '../../importers/gns3-containers.ts'
import type { OpenArchive } from './zip-archives.ts'

/** Bytes of the texts that are read of one archive, and of one of them. */
const most = { all: 8 << 20, one: 64 << 10 }
/** Most settings that are named as left out. */
const maxLeftOut = 1000
const pattern = new RegExp(`^project-files/docker/([^/]+)/${interfacesPath}$`)

/**
 * The texts that docker nodes of GNS3 have for the configuration of their interfaces, by the id of the node, and their members of the
 * archive, which cannot be read again.
 */
export async function interfacesIn(
  archive: OpenArchive,
): Promise<{ readonly texts: ReadonlyMap<string, string>; readonly members: ReadonlySet<string> }> {
  const texts = new Map<string, string>()
  const members = new Set<string>()
  let left = most.all
  for (const [name, size] of archive.members) {
    const [, id] = pattern.exec(name) ?? []
    if (id === undefined || size > Math.min(left, most.one)) continue
    left -= size
    members.add(name)
    texts.set(id.toLowerCase(), await new Response(await archive.read(name)).text())
  }
  return { texts, members }
}

interface DockerNode {
  readonly node_id: string
  readonly name: string
  readonly node_type: string
  readonly console_type?: string | null | undefined
  readonly properties?: Readonly<Record<string, unknown>> | undefined
}
interface ArchiveLink {
  readonly nodes: readonly { readonly node_id: string }[]
}

/** What becomes of the docker nodes of an archive. `links`: all that the archive has. */
export class ArchivedContainers {
  readonly #ends = new Map<string, number>()
  readonly #interfaces: ReadonlyMap<string, string>
  readonly leftOut: string[] = []

  constructor(links: readonly ArchiveLink[], interfaces: ReadonlyMap<string, string>) {
    this.#interfaces = interfaces
    for (const { node_id } of links.flatMap(({ nodes }) => nodes)) {
      const id = node_id.toLowerCase()
      this.#ends.set(id, (this.#ends.get(id) ?? 0) + 1)
    }
  }

  /**
   * The members of a docker node as one of kind container; undefined for other nodes. One that names no image keeps its type. `more`: settings
   * that are apart in an archive of ours.
   */
  membersOf(
    { node_id, name, node_type, console_type, properties = {} }: DockerNode,
    more: Readonly<Record<string, unknown>>,
  ): object | undefined {
    if (node_type !== 'docker') return undefined
    const id = node_id.toLowerCase()
    const text = this.#interfaces.get(id)
    const links = this.#ends.get(id) ?? 0
    const input = { links, ...(text !== undefined && { interfaces: { text } }) }
    const read = archivedContainer(properties, console_type, input)
    if (read === undefined) return { node_type }
    const room = Math.max(0, maxLeftOut - this.leftOut.length)
    this.leftOut.push(...read.leftOut.slice(0, room).map((setting) => `${setting} of ${name}`))
    const { console_type: own = 'telnet', ...settings } = read.fields
    return { ...read.kind, console_type: own, properties: { ...settings, ...more } }
  }
}
