import { quotedPath } from '../lib/text/escape.ts'
import { maxChecks } from '../model/lab/topology.ts'
import { isUuid } from '../model/schema/fields.ts'
import { readCheck } from './checks.ts'
import type { Desired, DesiredCheck, DesiredNode, DesiredStarting } from './desired.ts'
import { Diagnostics, didYouMean, enough, quoted } from './diagnostics.ts'
import { Contents, isOutside, type NamedFile } from './files.ts'
import { projectIdOf } from './ids.ts'
import { LabFileError } from './lab-file-error.ts'
import { LinkReader, type LinkTarget, namesOf } from './links.ts'
import { readManagement } from './management.ts'
import { defaultMaxObjects } from './max-objects.ts'
import { kindIn, type Reading, readNode } from './nodes.ts'
import type { LabFileDiagnostic, Position } from './position.ts'
import { Reader } from './reader.ts'
import { LabName, NodeName, nodeKeyNames, nodeSchemas, sectionNames, sections } from './schema.ts'
import { type ReadSegment, readSegment } from './segments.ts'
import { readTasks } from './tasks.ts'
import { TemplateReader } from './templates.ts'
import { treeOf } from './tree.ts'
import { amountOf } from './units.ts'
import { at, type Entry, type MapValue, type Value } from './values.ts'
import { withVariables } from './variables.ts'

/** Options for reading a lab file. */
export interface LabFileOptions {
  /** Name of the lab, in place of that in the file. */
  readonly name?: string
  /** Values of variables by name, in place of those in the file; as the command line has them. */
  readonly vars?: Readonly<Record<string, string>>
  /** Most nodes, segments and links together. Default: as many as a lab may have by default. */
  readonly maxObjects?: number
}

/** Options for reading a whole lab file. `files`: the contents of the files that it names, by their paths as they are written there. */
export type LabFileInput = LabFileOptions & { readonly files?: Readonly<Record<string, string>> }

/** The values of a lab file, which `namedFiles` and `readLabFile` accept in place of its text. Throws a `LabFileError` for text that is not YAML. */
export function valuesOf(text: string): Value {
  const diagnostics = new Diagnostics()
  const root = untilEnough(() => treeOf(text, diagnostics))
  if (root === undefined) throw new LabFileError(diagnostics.list())
  return root
}

/**
 * Reads a lab file: YAML 1.2, or JSON. Rejects with a `LabFileError` that has all diagnostics, at most 20, and the number of the others.
 */
export async function readLabFile(
  file: string | Value,
  { files = {}, ...options }: LabFileInput = {},
): Promise<Desired> {
  const { desired, contents } = read(file, files, options)
  await contents.digests()
  return desired
}

interface NamingOptions extends LabFileOptions {
  readonly allowOutside?: boolean
}

/**
 * The files that a lab file names, whose contents `readLabFile` needs, and what is wrong in it, so that a missing file is reported
 * with it. Unless `allowOutside`, a path that leaves the directory of the lab file is a fault, and not among the files. The caller
 * must refuse links that leave it.
 */
export function namedFiles(
  file: string | Value,
  { allowOutside = false, ...options }: NamingOptions = {},
): { readonly files: readonly NamedFile[]; readonly diagnostics: readonly LabFileDiagnostic[] } {
  const diagnostics = new Diagnostics()
  const contents = new Contents(diagnostics, undefined)
  const root = typeof file === 'string' ? valuesOf(file) : file
  untilEnough(() => {
    desiredIn(root, { diagnostics, contents, options })
    for (const { path, at } of contents.named)
      if (!allowOutside && isOutside(path))
        diagnostics.add(
          at,
          `the file ${quotedPath(path)} is not in the directory of the lab file`,
          '--allow-outside allows it',
        )
  })
  return {
    files: contents.named.filter(({ path }) => allowOutside || !isOutside(path)),
    diagnostics: diagnostics.list(),
  }
}

/** Undefined when there were so many diagnostics that the reading ended. */
function untilEnough<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch (error) {
    if (error === enough) return undefined
    throw error
  }
}

function read(file: string | Value, files: Readonly<Record<string, string>>, options: LabFileOptions) {
  const root = typeof file === 'string' ? valuesOf(file) : file
  const diagnostics = new Diagnostics()
  const contents = new Contents(diagnostics, files)
  const desired = untilEnough(() => desiredIn(root, { diagnostics, contents, options }))
  if (desired === undefined || !diagnostics.isEmpty) throw new LabFileError(diagnostics.list())
  return { desired, contents }
}

interface Given {
  readonly diagnostics: Diagnostics
  readonly contents: Contents
  readonly options: LabFileOptions
}

function desiredIn(root: Value, { diagnostics, contents, options }: Given): Desired | undefined {
  if (root.type !== 'map') {
    diagnostics.add(root.at, 'a lab file is a map', 'begin with lab: NAME and nodes:')
    return undefined
  }
  for (const [name, { key }] of root.entries)
    if (!sectionNames.includes(name))
      diagnostics.add({ ...key, path: '' }, `unknown key ${quoted(name)}`, () => didYouMean(name, sectionNames))
  const reader = new Reader(diagnostics)
  const file = withVariables(root, { reader, diagnostics, given: options.vars ?? {} })
  const head = {
    lab: reader.member(sections.lab, at(file, 'lab')),
    version: reader.member(sections.version, at(file, 'version')),
    about: reader.member(sections.about, at(file, 'about')),
    compute: reader.member(sections.compute, at(file, 'compute')),
    placement: reader.member(sections.placement, at(file, 'placement')),
  }
  if (!file.entries.has('lab'))
    diagnostics.add(root.at, '"lab" is missing', 'write lab: with the name of the lab, such as lab: wan-edge')
  if (!file.entries.has('nodes'))
    diagnostics.add(root.at, '"nodes" is missing', 'write nodes: with the nodes, such as PC1: { kind: pc }')
  const lab = options.name ?? head.lab ?? ''
  requireFewObjects(file, options.maxObjects ?? defaultMaxObjects, diagnostics)
  if (options.name !== undefined && !new RegExp(String(LabName.pattern)).test(options.name))
    diagnostics.add(
      at(file, 'lab')?.at ?? root.at,
      `${quoted(options.name)} is not a valid lab name`,
      `expected ${LabName.expects}`,
    )

  const managed = sectionOf(file, 'management')
  const hasManagement = managed !== undefined
  const reading: Reading = {
    lab,
    compute: head.compute,
    placement: head.placement,
    hasManagement,
    diagnostics,
    reader,
    contents,
  }
  const templates = new TemplateReader(at(file, 'templates'), diagnostics)
  const targets = new Map<string, LinkTarget>()
  const nodes: DesiredNode[] = []
  const consoles = new Map<string, string>()
  for (const [name, entry] of entriesOf(file, 'nodes', diagnostics)) {
    if (!isFree(name, entry, targets, diagnostics)) continue
    const map = mapIn(entry, 'a node is a map, such as { kind: pc }', diagnostics)
    const merged = map && templates.merged(map)
    const isKindUnknown = merged && at(merged, 'kind') === undefined && templates.isPartial(merged)
    const found = merged && !isKindUnknown ? readNode(name, merged, entry.key, reading) : undefined
    if (found !== undefined) {
      checkConsole(found.node, consoles, at(merged, 'console')?.at ?? entry.key, diagnostics)
      nodes.push(found.node)
    }
    targets.set(name.toLowerCase(), { name, ...found })
  }
  const segments: (ReadSegment & { readonly list: Value | undefined })[] = []
  for (const [name, entry] of entriesOf(file, 'segments', diagnostics)) {
    if (!isFree(name, entry, targets, diagnostics)) continue
    const map = mapIn(entry, 'a segment is a map, such as { kind: switch, members: [PC1, PC2] }', diagnostics)
    const found = map && readSegment(name, map, entry.key, reading)
    if (found !== undefined) segments.push({ ...found, list: at(map, 'members') })
    targets.set(name.toLowerCase(), { name, ...(found !== undefined && { node: found.node }) })
  }
  checkTemplates(templates, reading)
  const given = managed && reader.member(sections.management, managed)
  const management = managed && given && readManagement(given, managed, nodes, reading)
  const net = management?.nat
  if (net !== undefined && isFreeOfNodes(net, targets, diagnostics))
    targets.set(net.name.toLowerCase(), { name: net.name, node: net })
  const ordered = checkOrder(management?.nodes ?? nodes, targets, diagnostics)
  const networks = [...segments.map(({ node }) => node), ...(net === undefined ? [] : [net])]
  checkFormerNames([...ordered, ...networks], targets, diagnostics)
  const links = new LinkReader(targets, reading)
  if (net !== undefined) links.addManagement(net, ordered)
  for (const { node, members, list } of segments) if (list?.type === 'list') links.addMembers(node, members, list)
  links.addLinks(sectionOf(file, 'links'))
  checkLinkNames(links, diagnostics)
  const checks = checksIn(file, { reader, links, targets, reading })
  const tasks = readTasks(sectionOf(file, 'tasks'), { reader, checks, section: sectionOf(file, 'checks'), diagnostics })
  return {
    lab,
    project_id: projectIdOf(lab),
    ...(head.about !== undefined && { about: head.about }),
    nodes: [...ordered, ...networks],
    links: links.all,
    ...(net !== undefined && { management: net.name }),
    starting: startingIn(file, reader),
    checks,
    ...(tasks !== undefined && { tasks }),
    at: at(file, 'lab')?.at ?? root.at,
  }
}

/** Whether no node has the name of the management network. */
function isFreeOfNodes(
  { name, at: position }: DesiredNode,
  targets: ReadonlyMap<string, LinkTarget>,
  diagnostics: Diagnostics,
): boolean {
  const other = targets.get(name.toLowerCase())
  if (other !== undefined)
    diagnostics.add(
      position,
      `the name ${quoted(name)} of the management network is taken by ${quoted(other.name)}`,
      'write another name: in management',
    )
  return other === undefined
}

/** No other node of the same compute may have the console port. `taken`: names of nodes by port and compute. */
function checkConsole(
  { name, compute_id = '', settings: { console } }: DesiredNode,
  taken: Map<string, string>,
  where: Position,
  diagnostics: Diagnostics,
): void {
  if (console === undefined) return
  const key = `${console} ${compute_id}`
  const other = taken.get(key)
  if (other === undefined) taken.set(key, name)
  else
    diagnostics.add(where, `${quoted(other)} already has the console port ${console}`, 'omit console to get a free one')
}

/** Ends the reading of a file with more nodes, segments and links than a lab may have. */
function requireFewObjects(file: MapValue, most: number, diagnostics: Diagnostics): void {
  const segments = sectionOf(file, 'segments')
  const members =
    segments?.type === 'map' ? [...segments.entries.values()].map(({ value }) => at(value, 'members')) : []
  const nodes = sectionOf(file, 'nodes')
  const sections = [nodes, segments, sectionOf(file, 'links'), ...members]
  const managed = sectionOf(file, 'management') === undefined ? 0 : 1 + sizeOf(nodes)
  const count = sections.reduce((sum, it) => sum + sizeOf(it), managed)
  if (count <= most) return
  diagnostics.add(file.at, `the file has ${count} nodes, segments and links`, `a lab has at most ${most}`)
  throw enough
}

const sizeOf = (value: Value | undefined): number =>
  value?.type === 'map' ? value.entries.size : value?.type === 'list' ? value.items.length : 0

/** A section; nothing after its colon means none. */
function sectionOf(file: MapValue, name: string): Value | undefined {
  const found = at(file, name)
  return found?.type === 'scalar' && found.value === null ? undefined : found
}

function entriesOf(file: MapValue, name: string, diagnostics: Diagnostics): Iterable<[string, Entry]> {
  const section = sectionOf(file, name)
  if (section === undefined) return []
  if (section.type === 'map') return section.entries
  diagnostics.add(section.at, `expected a map from names to ${name}`)
  return []
}

function mapIn({ value }: Entry, expected: string, diagnostics: Diagnostics): MapValue | undefined {
  if (value.type === 'map') return value
  diagnostics.add(value.at, expected)
  return undefined
}

/** Whether a node or segment may have the name. */
function isFree(
  name: string,
  { key }: Entry,
  targets: ReadonlyMap<string, LinkTarget>,
  diagnostics: Diagnostics,
): boolean {
  const other = targets.get(name.toLowerCase())
  const isRight = new RegExp(String(NodeName.pattern), 'u').test(name) && name.length <= 255
  if (!isRight) diagnostics.add(key, `${quoted(name)} is not a valid node name`, `expected ${NodeName.expects}`)
  else if (isUuid(name)) diagnostics.add(key, `${quoted(name)} looks like an id (UUID)`, 'choose another name')
  else if (other !== undefined)
    diagnostics.add(
      key,
      `the name ${quoted(name)} is taken${other.name === name ? '' : ` by ${quoted(other.name)}: names are not case-sensitive`}`,
    )
  return isRight && !isUuid(name) && other === undefined
}

/** Adds the diagnostics of templates that no node takes over. */
function checkTemplates(templates: TemplateReader, reading: Reading): void {
  const { diagnostics, reader } = reading
  for (const name of templates.names) {
    if (templates.used.has(name)) continue
    const template = templates.template(name)
    if (template === undefined) continue
    const merged = templates.merged(template)
    const kind = at(merged, 'kind') === undefined ? undefined : kindIn(merged, merged.at, diagnostics)
    if (kind !== undefined) {
      const schema = nodeSchemas[kind]
      if (schema !== undefined) reader.read({ ...schema, required: [] } as typeof schema, merged)
      continue
    }
    const known = [
      ...new Set([...nodeKeyNames, ...Object.values(nodeSchemas).flatMap((it) => Object.keys(it.properties))]),
    ]
    for (const [key, entry] of merged.entries)
      if (!known.includes(key))
        diagnostics.add({ ...entry.key, path: template.at.path }, `unknown key ${quoted(key)}`, () =>
          didYouMean(key, known),
        )
  }
}

/** Most nodes of a circle that a message names. */
const maxCircle = 20

/** Checks `after`, and gives the names there as the nodes have them. */
function checkOrder(
  nodes: readonly DesiredNode[],
  targets: ReadonlyMap<string, LinkTarget>,
  diagnostics: Diagnostics,
): DesiredNode[] {
  const ordered = nodes.map((node) => ({ ...node, after: afterOf(node, targets, diagnostics) }))
  const byName = new Map(ordered.map((node) => [node.name, node]))
  const done = new Set<string>()
  /** Follows `after` from one node; without recursion, as a file may have a chain of thousands. */
  for (const start of ordered) {
    const way: { readonly node: DesiredNode; next: number }[] = [{ node: start, next: 0 }]
    /** Where the nodes of the way are on it. */
    const open = new Map([[start.name, 0]])
    while (way.length > 0) {
      const last = way.at(-1)
      if (last === undefined) break
      const name = done.has(last.node.name) ? undefined : last.node.after[last.next]
      const before = name === undefined ? undefined : open.get(name)
      last.next += 1
      if (name === undefined) {
        done.add(last.node.name)
        open.delete(last.node.name)
        way.pop()
      } else if (before !== undefined) {
        const circle = [...way.slice(before, before + maxCircle).map(({ node }) => node.name), name]
        diagnostics.add(
          last.node.keys.after ?? last.node.at,
          `nodes wait for one another: ${circle.slice(0, maxCircle).join(' after ')}`,
        )
      } else {
        const node = byName.get(name)
        if (node === undefined || done.has(name)) continue
        open.set(name, way.length)
        way.push({ node, next: 0 })
      }
    }
  }
  return ordered
}

function afterOf(
  { name, after, keys, at: position }: DesiredNode,
  targets: ReadonlyMap<string, LinkTarget>,
  diagnostics: Diagnostics,
): string[] {
  const where = keys.after ?? position
  return after.flatMap((word) => {
    const target = targets.get(word.toLowerCase())
    if (target === undefined)
      diagnostics.add(where, `there is no node ${quoted(word)}`, () => didYouMean(word, namesOf(targets)))
    else if (target.name === name) diagnostics.add(where, `${quoted(name)} cannot start after itself`)
    else if (target.node?.start === false)
      diagnostics.add(
        where,
        `${quoted(target.name)} will not be started: it has start: false`,
        'remove its start: false, or this after',
      )
    return target === undefined || target.name === name ? [] : [target.name]
  })
}

function checkFormerNames(
  nodes: readonly DesiredNode[],
  targets: ReadonlyMap<string, LinkTarget>,
  diagnostics: Diagnostics,
): void {
  const seen = new Map<string, string>()
  for (const { name, was, keys, at: position } of nodes) {
    if (was === undefined) continue
    const where: Position = keys.was ?? position
    const key = was.toLowerCase()
    const other = seen.get(key)
    if (targets.has(key) && key !== name.toLowerCase())
      diagnostics.add(
        where,
        `${quoted(was)} is also a name in the file`,
        'use was only for a name that is no longer in the file',
      )
    if (other !== undefined) diagnostics.add(where, `${quoted(other)} also has was: ${was}`)
    seen.set(key, name)
  }
}

function checkLinkNames({ all }: LinkReader, diagnostics: Diagnostics): void {
  const seen = new Map<string, Position>()
  for (const { name, keys, at: position } of all) {
    if (name === undefined) continue
    const other = seen.get(name.toLowerCase())
    if (other !== undefined)
      diagnostics.add(keys.name ?? position, `the name ${quoted(name)} is taken by the link in line ${other.line}`)
    seen.set(name.toLowerCase(), position)
  }
}

function startingIn(file: MapValue, reader: Reader): DesiredStarting {
  const { load_below, ...starting } = reader.member(sections.starting, sectionOf(file, 'starting')) ?? {}
  return {
    give_up: 'stop',
    ...starting,
    ...(load_below !== undefined && { load_below: amountOf('share', load_below) }),
  }
}

function checksIn(
  file: MapValue,
  {
    reader,
    links,
    targets,
    reading,
  }: { reader: Reader; links: LinkReader; targets: ReadonlyMap<string, LinkTarget>; reading: Reading },
): DesiredCheck[] {
  const section = sectionOf(file, 'checks')
  if (section?.type !== 'list' || section.items.length > maxChecks) {
    reader.member(sections.checks, section)
    return []
  }
  const named = links.all.flatMap(({ name }) => (name === undefined ? [] : [[name.toLowerCase(), name] as const]))
  // The first link of a name: another one is a fault already.
  const names = {
    nodes: targets,
    links: new Map(named.reverse()),
    contents: reading.contents,
    diagnostics: reading.diagnostics,
  }
  return section.items.flatMap((value) => {
    const before = reading.diagnostics.count
    const given = reader.readPartly(sections.checks.items, value)
    const isPartial = reading.diagnostics.count > before
    const check = given && readCheck(given, value, { ...names, isPartial })
    return check === undefined || isPartial ? [] : [check]
  })
}
