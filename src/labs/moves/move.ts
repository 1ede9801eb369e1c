import { type ReservedPort, reserveApart } from '../../fleet/link-check/link-check.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import { Revert } from '../../lib/revert.ts'
import type { NodeKindName } from '../../model/kinds/node.ts'
import { isStateless } from '../../model/kinds/node.ts'
import { imageProperties } from '../../model/lab/archive-words.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import { imagesOf, isOfDeleted, requireStopped } from '../archives/archive.ts'
import { fillFromArchive } from '../archives/import-lab.ts'
import { type ComputeAgents, openProject, removeProject } from '../computes/agents.ts'
import { Changes, type LabDocument, type LinkRecord, type NodeRecord, type ProjectRecord } from '../lab/document.ts'
import { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import type { LabStorage } from '../lab/store.ts'
import { findEnd } from '../links/link-ends.ts'
import { detachEnds } from '../links/wiring.ts'
import { joinLinks, makeNode } from '../nodes/placeholders.ts'
import { wishOf } from '../nodes/placement.ts'
import type { Labs } from '../service.ts'
import { documentOf, keptOf } from '../snapshots/snapshots.ts'

/** Computes to try for one lab. */
const maxTried = 3

export interface MoveOptions {
  readonly agentFor: ComputeAgents
  /** Aborts the copy, also in the middle of a file; the lab is then where it was. */
  readonly signal: AbortSignal
  /** Called with what the move does now. */
  readonly show: (doing: string) => void
}

/**
 * Moves the part of a lab that is on one compute to another compute that its placement allows. First the files are copied. Then the document
 * names the new compute, and then the old files are removed. A service that is killed leaves the lab on one of the two computes, and
 * `recoverMove` removes the rest from the other one. An open lab is closed meanwhile. A closed lab whose compute is gone is made from its
 * archive. 409 with the reason why the lab stays.
 */
export async function moveLab(labs: Labs, id: string, from: string, options: MoveOptions): Promise<string> {
  const { agentFor } = options
  const check = (lab: Lab) => {
    try {
      requireStopped(lab, 'moved')
      if (labs.jobs.isBusy(id) || labs.parts.isUsed(id))
        throw conflict('A job of the project is running, or the project is being exported or copied')
      // When an earlier move took the lab elsewhere, only the files that it left here are removed, which is always possible.
      if (!labs.archives.isComputeLost(lab) && lab.document.project.computes.includes(from)) requireMovable(lab, from)
    } catch (error) {
      const message = `The project stays on compute ${from}, which is being drained. ${(error as Error).message}`
      lab.emit({ action: 'log.warning', event: { message } })
      throw error
    }
  }
  return labs.lifecycle.withClosedLab(id, agentFor, check, async (lab) => {
    const isGone = labs.archives.isComputeLost(lab)
    await recoverMove(labs, lab, agentFor).catch((error: unknown) => {
      // What is left on a compute that is gone is removed when it is back.
      if (!isGone) throw error
    })
    const { computes } = lab.document.project
    // An earlier move had only left files here, which `recoverMove` has removed.
    if (!computes.includes(from)) return computes[0] ?? ''
    if (!isGone) await requireIdle(lab, from, agentFor)
    let failure: unknown
    for (const to of await targetsOf(labs, lab, from)) {
      try {
        const way = { ...options, from, to }
        if (isGone) await restoreTo(labs, lab, way)
        else await labs.parts.withOpen(lab, agentFor, () => moveTo(labs, lab, way))
        await recoverMove(labs, lab, agentFor).catch(ignore('the next opening of the project removes the rest'))
        return to
      } catch (error) {
        if (options.signal.aborted || !(error instanceof ApiError)) throw error
        failure ??= error
      }
    }
    throw failure ?? conflict('No other compute accepts projects')
  })
}

/** 409 for a lab with snapshots that cannot be moved as they are. */
function requireMovable({ document }: Lab, from: string): void {
  const { snapshots, project } = document
  for (const { name, computes, lastRunning = {} } of snapshots.values()) {
    if (Object.keys(lastRunning).length > 0)
      throw conflict(
        `Its snapshot ${name} contains the memory of running machines: delete the snapshot before the project is moved`,
      )
    if (project.computes.length > 1 || computes.some((id) => id !== from))
      throw conflict(`Its snapshot ${name} spans several computes: delete the snapshot before the project is moved`)
  }
  if (project.restoring !== undefined || project.snapshotInProgress !== undefined)
    throw conflict('A snapshot is being taken or restored')
}

/** 409 when a client of the compute interface runs nodes of a lab that is closed here. */
async function requireIdle(lab: Lab, from: string, agentFor: ComputeAgents): Promise<void> {
  const there = (await agentFor(from).projects.list('all')).find(({ project_id }) => project_id === lab.id)
  if (there === undefined || there.status === 'closed') return
  const records = recordsOn(lab.document, from).filter(({ node_type }) => !isStateless(node_type))
  for (const kind of new Set(records.map(({ node_type }) => node_type))) {
    const running = (await agentFor(from).nodes.list(lab.id, kind as NodeKindName)).find(
      ({ status }) => status !== 'stopped',
    )
    if (running !== undefined)
      throw conflict(`${running.name} is running: the project can be moved after its nodes are stopped`)
  }
}

const recordsOn = ({ nodes }: LabDocument, computeId: string): NodeRecord[] =>
  [...nodes.values()].filter(({ compute_id }) => compute_id === computeId)

/** The computes that may take the part of a lab, the best first. 409 when its labels are on no other compute. */
async function targetsOf(labs: Labs, lab: Lab, from: string): Promise<string[]> {
  const { project } = lab.document
  const wishes = recordsOn(lab.document, from).map((record) => wishOf(lab, record))
  const labels = [...new Set([...(project.placement?.labels ?? []), ...wishes.flatMap((it) => it.labels)])]
  const policy = project.placement?.policy ?? 'room'
  const kinds = [...new Set(wishes.flatMap((it) => it.kinds))]
  // Of the computes of the lab only those that take projects.
  const found = (await labs.computes.candidates([], { policy, labels, kinds })).filter((id) => id !== from)
  const isOwn = (id: string) => project.computes.includes(id)
  const ordered = policy === 'spread' ? found : [...found.filter(isOwn), ...found.filter((id) => !isOwn(id))]
  return ordered.slice(0, maxTried)
}

/** The links of which one end moves. */
const crossing = ({ links, nodes }: LabDocument, from: string): LinkRecord[] =>
  [...links.values()].filter((link) => {
    const [a, b] = link.nodes.map(({ node_id }) => nodes.get(node_id)?.compute_id === from)
    return a !== b
  })

/** 409 when a link could not lead from the new compute to the others of the lab. */
async function requireReachable(labs: Labs, { id, document }: Lab, { from, to, agentFor }: MovePlan): Promise<void> {
  const linked = crossing(document, from).filter(({ wiring }) => wiring.type !== 'none')
  const ends = linked.flatMap(({ nodes }) => nodes.map(({ node_id }) => document.nodes.get(node_id)?.compute_id))
  const others = [...new Set(ends)].filter((it) => it !== undefined && it !== from && it !== to) as string[]
  for (const other of others) {
    const reserve = async (compute_id: string): Promise<ReservedPort> => ({
      compute_id,
      project_id: id,
      udp_port: await agentFor(compute_id).projects.reserveUdpPort(id),
    })
    const release = (port: ReservedPort) => agentFor(port.compute_id).projects.releaseUdpPort(id, port.udp_port)
    // They are released in any case: nothing commits.
    await using revert = new Revert(ignore('a port that stays reserved goes with the project'))
    await labs.computes.peers(await reserveApart([() => reserve(to), () => reserve(other)], release, revert))
  }
}

interface MovePlan extends MoveOptions {
  readonly from: string
  readonly to: string
}

/** Copies, and lets the document name the new compute. A failure before that leaves nothing on it. */
async function moveTo(labs: Labs, lab: Lab, way: MovePlan): Promise<void> {
  const copy = await onNewCompute(labs, lab, way, async (path) => {
    await requireReachable(labs, lab, way)
    return { ...(await copyTo(labs, lab, way)), path }
  })
  await labs.documents.saveServiceChange(lab, commitOf(lab, copy, way))
}

/** Makes something of a lab on another compute, in the directory `path` there. A failure leaves nothing there. */
async function onNewCompute<T>(
  labs: Labs,
  lab: Lab,
  { from, to, agentFor, signal }: MovePlan,
  make: (path: string | null) => Promise<T>,
): Promise<T> {
  await forgetOn(labs, lab, to, agentFor)
  const isNew = !lab.document.project.computes.includes(to)
  if (isNew && (await agentFor(to).projects.list('all')).some(({ project_id }) => project_id === lab.id))
    throw conflict(`The compute ${to} already has a project with this id`, { code: 'project-exists' })
  await setProject(labs, lab, (project) => ({ ...project, moving: { from, to } }))
  await using revert = new Revert(ignore('the next opening of the project removes the rest'))
  revert.add(() => undoMove(labs, lab, agentFor))
  const { path } = await openProject(agentFor(to), { project_id: lab.id, name: lab.document.project.name })
  const made = await make(path)
  signal.throwIfAborted()
  revert.commit()
  return made
}

/** Makes a lab whose compute is gone from its archive. The files on the old compute are removed when it is connected again. */
async function restoreTo(labs: Labs, lab: Lab, way: MovePlan): Promise<void> {
  const { from, to, agentFor, show } = way
  const content = await labs.archiveStore?.read(lab.id)
  if (content === undefined) throw conflict('Its archive is missing')
  const { document } = lab
  const there = new Lab(lab.id, new Map([['project', { ...document.project, computes: [to] }]]), unsaved, labs.events)
  const forget = async (ids: Iterable<string>) => {
    for (const id of ids)
      await labs.documents.putSideDocument(id, undefined).catch(ignore('a document that nothing names stays'))
  }
  await using revert = new Revert(ignore('a document that nothing names stays'))
  revert.add(() => forget(there.document.snapshots.keys()))
  const path = await onNewCompute(labs, lab, way, async (newPath) => {
    show('from its archive')
    await fillFromArchive(labs, there, content, agentFor)
    for (const { node_id, name, creationError } of document.nodes.values()) {
      const made = there.document.nodes.get(node_id)
      if (made === undefined) throw conflict(`The archive of the project has no node ${name}`)
      if (made.creationError !== undefined && creationError === undefined)
        throw conflict(`${name}: ${made.creationError}`)
    }
    await agentFor(to).projects.close(lab.id)
    return newPath
  })
  revert.commit()
  const before = [...document.snapshots.keys()]
  await labs.documents.saveServiceChange(lab, (project) => {
    const changes = new Changes()
    for (const [id, now] of document.nodes) {
      const { compute_id, name, console, console_type, properties } = there.document.nodes.get(id) ?? now
      changes.put('node', id, { ...now, compute_id, name, console, console_type, properties })
    }
    for (const [id, now] of document.links) {
      const wiring = there.document.links.get(id)?.wiring ?? { type: 'none' as const }
      changes.put('link', id, { ...now, wiring, capture: null })
    }
    for (const id of before) changes.remove('snapshot', id)
    for (const [id, snapshot] of there.document.snapshots) changes.put('snapshot', id, snapshot)
    const { moving: _, formerComputes = [], ...rest } = project
    return changes.project({
      ...rest,
      path,
      computes: [to],
      formerComputes: [...new Set([...formerComputes.filter((id) => id !== to), from])],
    })
  })
  await forget(before)
}

/** The records of what was copied, as the new compute has it. */
interface Copy {
  readonly nodes: readonly NodeRecord[]
  readonly links: readonly LinkRecord[]
  /** Sizes of the snapshots, by their ids. */
  readonly sizes: ReadonlyMap<string, number>
}

async function copyTo(labs: Labs, lab: Lab, way: MovePlan): Promise<Copy> {
  const { document } = lab
  const sizes = new Map<string, number>()
  for (const snapshot of document.snapshots.values()) {
    const content = documentOf(await keptOf(labs, snapshot))
    const { nodes } = await copyContent(labs, lab, content, { ...way, snapshot: snapshot.snapshot_id })
    const { size } = await way.agentFor(way.to).snapshots.take(lab.id, snapshot.snapshot_id)
    sizes.set(snapshot.snapshot_id, size)
    for (const node of nodes)
      if (isKnownKind(node.node_type) && node.creationError === undefined)
        await way.agentFor(way.to).nodes.remove(nodeRefOf(lab, node))
  }
  return { ...(await copyContent(labs, lab, document, way)), sizes }
}

/** Makes the files, nodes and links of a document on the new compute: of the lab, or of a snapshot of it. */
async function copyContent(
  labs: Labs,
  lab: Lab,
  document: LabDocument,
  way: MovePlan & { readonly snapshot?: string },
): Promise<Omit<Copy, 'sizes'>> {
  const { from, to, agentFor, snapshot } = way
  await copyFiles(lab, document, way)
  const records = recordsOn(document, from)
  const names = await imageNames(records, to, agentFor)
  const nodes: NodeRecord[] = []
  for (const [index, record] of records.entries()) {
    way.signal.throwIfAborted()
    way.show(`node ${index + 1} of ${records.length}`)
    const renamed = imageProperties(record).map((key) => {
      const path = record.properties[key] as string
      return [key, names.get(`${record.node_type} ${path}`) ?? path]
    })
    const properties = { ...record.properties, ...Object.fromEntries(renamed) }
    const wanted = { ...record, compute_id: to, properties }
    const made = record.creationError === undefined ? await makeNode(lab, wanted, agentFor) : wanted
    if (made.creationError !== undefined && record.creationError === undefined && snapshot === undefined)
      throw conflict(`${record.name}: ${made.creationError}`)
    nodes.push(made)
  }
  const inner = [...document.links.values()]
    .filter((link) => link.nodes.every(({ node_id }) => document.nodes.get(node_id)?.compute_id === from))
    .map((link): LinkRecord => ({ ...link, wiring: { type: 'none' }, capture: null }))
  const entries = new Map(document.entries())
  for (const node of nodes) entries.set(`node/${node.node_id}`, node)
  // The lab as it is on the new compute: its links are made there before the document names it.
  const there = new Lab(lab.id, entries, unsaved, labs.events)
  const joined = new Map((await joinLinks(labs, there, inner, agentFor)).map((link) => [link.link_id, link]))
  const lost = inner.find(
    (link) => !joined.has(link.link_id) && document.links.get(link.link_id)?.wiring.type !== 'none',
  )
  if (lost !== undefined && snapshot === undefined) {
    const ends = lost.nodes.map(({ node_id }) => document.nodes.get(node_id)?.name).join(' and ')
    throw conflict(`The link of ${ends} cannot be made on the compute ${to}`)
  }
  return { nodes, links: inner.map((link) => joined.get(link.link_id) ?? link) }
}

const unsaved: LabStorage = {
  heads: async () => new Map(),
  load: async () => undefined,
  async save() {},
  async remove() {},
}

/** Files that no later start needs. */
const isTransient = (path: string): boolean => /^project-files\/tmp\/|\.(pid|lck)$/.test(path)
const isMemory = (path: string): boolean => /\/memory\.(started|suspended)$/.test(path)

async function copyFiles(
  lab: Lab,
  document: LabDocument,
  { from, to, agentFor, signal, show, snapshot }: MovePlan & { readonly snapshot?: string },
): Promise<void> {
  const own = new Set(recordsOn(document, from).map(({ node_id }) => node_id))
  const isOfNode = (path: string) => own.has(path.split('/')[2]?.toLowerCase() ?? '')
  const files = (await agentFor(from).files.list(lab.id, { sums: false, snapshot, complete: true })).filter(
    ({ path }) => !isTransient(path) && !isOfDeleted(document, path),
  )
  const memory = files.find(({ path }) => isMemory(path))
  if (memory !== undefined)
    throw conflict(`A machine of the project has saved memory (${memory.path}) to resume from: start and stop it first`)
  // Files of the project, and not of a node, that the other compute has from its own part.
  const isShared = lab.document.project.computes.includes(to)
  const there = new Set(
    isShared ? (await agentFor(to).files.list(lab.id, { sums: false })).map(({ path }) => path) : [],
  )
  for (const [index, { path }] of files.entries()) {
    signal.throwIfAborted()
    show(`file ${index + 1} of ${files.length}`)
    const { content, size } = await agentFor(from).files.read(lab.id, path, { snapshot, signal })
    const name = there.has(path) && !isOfNode(path) ? `${path}.${from}` : path
    await agentFor(to).files.write(lab.id, name, content, { parents: true, size, signal })
  }
}

/**
 * The names that images have on the new compute where they differ, by kind and name. 409 when it has another image of that name: an overlay
 * on top of that one would be damaged. An image that it lacks is copied there when the node is made.
 */
async function imageNames(
  records: readonly NodeRecord[],
  to: string,
  agentFor: ComputeAgents,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  for (const { kind, path, sha256 } of (await imagesOf(records, agentFor)).values()) {
    const list = await agentFor(to).images.list(kind)
    const there = list.find((it) => it.path === path)
    if (there !== undefined && sha256 !== undefined && there.sha256 === sha256) continue
    const same = sha256 === undefined ? undefined : list.find((it) => it.sha256 === sha256)
    if (same !== undefined) names.set(`${kind} ${path}`, same.path)
    else if (there !== undefined) throw conflict(`The image ${path} on the compute ${to} has different content`)
  }
  return names
}

/** The changes by which the document names the new compute. */
function commitOf(
  { document }: Lab,
  { nodes, links, sizes, path }: Copy & { readonly path: string | null },
  { from, to }: MovePlan,
) {
  return (project: ProjectRecord): Changes => {
    const changes = new Changes()
    for (const node of nodes) {
      // Fields that no compute has, such as the position on the map, may have been changed meanwhile, and are kept.
      const now = document.nodes.get(node.node_id)
      if (now !== undefined) {
        const { compute_id, name, console, console_type, properties } = node
        changes.put('node', node.node_id, { ...now, compute_id, name, console, console_type, properties })
      }
    }
    for (const { link_id, wiring } of links) {
      const now = document.links.get(link_id)
      if (now !== undefined) changes.put('link', link_id, { ...now, wiring, capture: null })
    }
    const cut = crossing(document, from).filter(({ wiring }) => wiring.type !== 'none')
    for (const link of cut) changes.put('link', link.link_id, { ...link, wiring: { type: 'none' }, capture: null })
    for (const snapshot of document.snapshots.values()) {
      const moved = Object.fromEntries(
        Object.entries(snapshot.moved ?? {}).map(([at, now]) => [at, now === from ? to : now]),
      )
      changes.put('snapshot', snapshot.snapshot_id, {
        ...snapshot,
        size: sizes.get(snapshot.snapshot_id) ?? snapshot.size,
        computes: [...new Set(snapshot.computes.map((id) => (id === from ? to : id)))],
        moved: { [from]: to, ...moved },
      })
    }
    const { moving: _, formerComputes = [], pendingLinks = [], ...rest } = project
    return changes.project({
      ...rest,
      // The directory of a lab is that on its first compute.
      path: project.computes[0] === from ? path : project.path,
      computes: [...new Set(project.computes.map((id) => (id === from ? to : id)))],
      formerComputes: [...new Set([...formerComputes.filter((id) => id !== to), from])],
      ...(pendingLinks.length + cut.length > 0 && {
        pendingLinks: [...new Set([...pendingLinks, ...cut.map((link) => link.link_id)])],
      }),
    })
  }
}

/**
 * Recovers a move that broke off: removes an incomplete copy; or attaches the links to the nodes that were moved, and removes the files that are
 * left on the old compute. What needs a compute that is not connected is left for the next call.
 */
export async function recoverMove(labs: Labs, lab: Lab, agentFor: ComputeAgents): Promise<void> {
  const { moving, formerComputes = [], pendingLinks = [] } = lab.document.project
  if (moving !== undefined) await undoMove(labs, lab, agentFor)
  if (pendingLinks.length > 0) await labs.parts.withOpen(lab, agentFor, () => rejoin(labs, lab, pendingLinks, agentFor))
  for (const computeId of formerComputes) await forgetOn(labs, lab, computeId, agentFor)
}

/** Removes a copy that is not complete. */
async function undoMove(labs: Labs, lab: Lab, agentFor: ComputeAgents): Promise<void> {
  const { moving, computes, name } = lab.document.project
  if (moving === undefined) return
  const { from, to } = moving
  // A compute that crashed may have the directory of the project and not know the project: once opened, both can be removed.
  if (await isThere(openProject(agentFor(to), { project_id: lab.id, name }))) {
    if (computes.includes(to)) {
      for (const node of recordsOn(lab.document, from))
        if (isKnownKind(node.node_type)) await agentFor(to).nodes.remove(nodeRefOf(lab, node)).catch(ignoreNotFound)
    } else await removeProject(agentFor(to), lab.id).catch(ignoreNotFound)
  }
  await setProject(labs, lab, ({ moving: _, ...project }) => project)
}

/** Attaches links again of which one node was moved. A link that cannot be attached stays without wiring. */
async function rejoin(labs: Labs, lab: Lab, ids: readonly string[], agentFor: ComputeAgents): Promise<void> {
  const links = ids.flatMap((id) => lab.document.links.get(id) ?? []).filter(({ wiring }) => wiring.type === 'none')
  for (const link of links)
    await detachEnds(
      lab,
      link.nodes.map((end) => findEnd(lab, end)),
      agentFor,
    )
  const joined = await joinLinks(labs, lab, links, agentFor)
  await labs.documents.saveServiceChange(lab, ({ pendingLinks: _, ...project }) =>
    joined.reduce((all, link) => all.put('link', link.link_id, link), new Changes().project(project)),
  )
}

/** Removes what a move has left on a compute. Does nothing for a compute that the lab is on, or never left. */
export async function forgetOn(labs: Labs, lab: Lab, computeId: string, agentFor: ComputeAgents): Promise<void> {
  const { formerComputes = [], computes, name } = lab.document.project
  if (!formerComputes.includes(computeId)) return
  if (!computes.includes(computeId)) {
    if (await isThere(openProject(agentFor(computeId), { project_id: lab.id, name })))
      await removeProject(agentFor(computeId), lab.id).catch(ignoreNotFound)
  }
  await setProject(labs, lab, ({ formerComputes: _, ...project }) => {
    const others = formerComputes.filter((id) => id !== computeId)
    return { ...project, ...(others.length > 0 && { formerComputes: others }) }
  })
}

/** False for a compute that was removed from the fleet: nothing there can be asked any more. */
const isThere = (opening: Promise<unknown>): Promise<boolean> =>
  opening.then(
    () => true,
    (error: unknown) => {
      ignoreNotFound(error)
      return false
    },
  )

const setProject = (labs: Labs, lab: Lab, change: (project: ProjectRecord) => ProjectRecord): Promise<void> =>
  labs.documents.saveServiceChange(lab, (project) => new Changes().project(change(project)))
