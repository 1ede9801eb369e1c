import { mapLimit } from '../../lib/async/map-limit.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { ProjectScope } from '../../model/access/project-scope.ts'
import { isStateless } from '../../model/kinds/node.ts'
import type { LabClass } from '../../model/lab/class.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { LabProject } from '../../model/lab/project.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes, type LinkRecord, type NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, reportedFields } from '../lab/node-on-compute.ts'
import { requireNodesWithin } from '../lab/token-limits.ts'
import { joinLinks, makeNode } from '../nodes/placeholders.ts'
import type { Labs } from '../service.ts'
import { tasksChanges } from '../tasks/tasks.ts'
import { isExported, requireStopped } from './archive.ts'
import { withoutAddresses } from './archive-document.ts'

/** Nodes that are copied concurrently. */
const maxAtOnce = 4

/** Input of a copy of a lab. */
export interface LabCopyInput {
  readonly name: string
  readonly path?: string | null | undefined
  readonly reset_mac_addresses?: boolean | undefined
  /** The id of the copy; absent: a new one. */
  readonly project_id?: string
  /** Whose copy it is, in which class. */
  readonly class?: LabClass
  /** The projects of the client. */
  readonly scope?: ProjectScope | undefined
}

/** Copies a lab in another process, on behalf of a caller. */
export type CopyLab = (lab: Lab, input: LabCopyInput, caller: Caller) => Promise<LabProject>

/**
 * Makes a closed copy of a lab, with new ids, on the same computes. Each compute copies the directories of its nodes, as reflinks where
 * the file system can; the other files that an archive would have are copied through the computes' files. 409 while a node runs. A failure
 * leaves nothing.
 */
export async function duplicateLab(
  labs: Labs,
  lab: Lab,
  input: LabCopyInput,
  { agentFor, caller }: { agentFor: ComputeAgents; caller: Caller },
): Promise<LabProject> {
  labs.access.requireNotMoving(lab.id)
  requireStopped(lab, 'copied')
  requireNodesWithin(agentFor.limits, lab.document.nodes.size)
  return labs.parts.withOpen(
    lab,
    agentFor,
    () => labs.copy?.(lab, input, caller) ?? copyLab(labs, lab, input, agentFor),
  )
}

/** Copies a lab in this process. The lab must be open on its computes. */
export function copyLab(labs: Labs, lab: Lab, input: LabCopyInput, agentFor: ComputeAgents): Promise<LabProject> {
  const { document } = lab
  const { project_id: _, path: __, computes, ...settings } = document.project
  return labs.creation.build(
    { ...settings, name: input.name, path: input.path ?? null, project_id: input.project_id ?? null },
    { agentFor, like: computes, scope: input.scope, class: input.class },
    async (copy) => {
      const ids = new Map([...document.nodes.keys()].map((id) => [id, crypto.randomUUID() as string]))
      const nodes = await mapLimit(
        [...document.nodes.values()],
        (source) => copyNode(lab, copy, source, { ids, resets: input.reset_mac_addresses ?? false, agentFor }),
        maxAtOnce,
      )
      await copyFiles(lab, copy, { ids, agentFor })
      const links = [...document.links.values()].map(
        (link): LinkRecord => ({
          ...link,
          link_id: crypto.randomUUID(),
          nodes: link.nodes.map((end) => ({ ...end, node_id: ids.get(end.node_id) as string })),
          wiring: { type: 'none' },
          capture: null,
        }),
      )
      const noEvents = { news: () => [], result: undefined }
      await copy.edit((made) => {
        const changes = tasksChanges(made, document.tasks)
        for (const node of nodes) changes.put('node', node.node_id, node)
        for (const link of links) changes.put('link', link.link_id, link)
        for (const drawing of document.drawings.values()) {
          const drawing_id = crypto.randomUUID()
          changes.put('drawing', drawing_id, { ...drawing, drawing_id })
        }
        return { changes, ...noEvents }
      })
      const joined = await joinLinks(labs, copy, links, agentFor)
      const changes = joined.reduce((all, link) => all.put('link', link.link_id, link), new Changes())
      await copy.edit(() => ({ changes, ...noEvents }))
    },
  )
}

async function copyNode(
  lab: Lab,
  copy: Lab,
  source: NodeRecord,
  { ids, resets, agentFor }: { ids: ReadonlyMap<string, string>; resets: boolean; agentFor: ComputeAgents },
): Promise<NodeRecord> {
  const record: NodeRecord = {
    ...(resets ? withoutAddresses(source) : source),
    node_id: ids.get(source.node_id) as string,
    console: null,
  }
  const made = await makeNode(copy, record, agentFor)
  if (!isKnownKind(source.node_type) || source.creationError !== undefined) return made
  if (made.creationError !== undefined) throw conflict(`${source.name}: ${made.creationError}`)
  if (!copiesDirectory(source)) return made
  const compute = agentFor(source.compute_id)
  await compute.nodes.duplicate(nodeRefOf(lab, source), made.node_id, copy.id)
  return { ...made, ...reportedFields(await compute.nodes.get(nodeRefOf(copy, made))) }
}

/** Whether the compute of a node copies its directory. Placeholders are on no compute, and a node that always runs is not copied. */
const copiesDirectory = ({ node_type, creationError }: NodeRecord): boolean =>
  isKnownKind(node_type) && creationError === undefined && !isStateless(node_type)

/** Copies the files of a lab that are not in a directory which its compute has copied with a node. */
async function copyFiles(
  lab: Lab,
  copy: Lab,
  { ids, agentFor }: { ids: ReadonlyMap<string, string>; agentFor: ComputeAgents },
): Promise<void> {
  const { nodes, project } = lab.document
  const newPathOf = (path: string): string | undefined => {
    if (!isExported(path)) return undefined
    const [, directory = '', id = '', rest = ''] = /^(project-files\/[^/]+\/)([^/]+)(\/.*)$/.exec(path) ?? []
    if (!isUuid(id)) return path
    const node = nodes.get(id.toLowerCase())
    return node === undefined || copiesDirectory(node) ? undefined : directory + ids.get(node.node_id) + rest
  }
  await mapLimit([...project.computes], async (computeId) => {
    const compute = agentFor(computeId)
    for (const { path } of await compute.files.list(lab.id, { sums: false })) {
      const newPath = newPathOf(path)
      if (newPath === undefined) continue
      const { content, size } = await compute.files.read(lab.id, path)
      await compute.files.write(copy.id, newPath, content, { parents: true, size })
    }
  })
}
