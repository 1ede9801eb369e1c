import type { Desired } from '../../labfile/desired.ts'
import { keptTasks } from '../../labfile/kept-tasks.ts'
import { mapPositions } from '../../labfile/map-positions.ts'
import { omit } from '../../lib/omit.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { NodeRecord } from '../lab/document.ts'
import { foreignPorts, indexLinks } from './actual-links.ts'
import { deleteLink, diffLink } from './diff-link.ts'
import { diffNode } from './diff-node.ts'
import { same } from './json-equal.ts'
import { matchLinks } from './match-links.ts'
import { isPresent, matchNodes, type NodeMatch, type NodeMatches } from './match-nodes.ts'
import { inOrder } from './order.ts'
import { removeLink, removeNode } from './removals.ts'
import { resolveLinks, segmentPorts, usedPorts } from './segment-ports.ts'
import { startNode } from './start-node.ts'
import { type Actual, type Plan, type PlanOptions, type PlanPart, stepOf } from './types.ts'

/**
 * What must be done so that a lab is what its file says. Pure: it reads nothing but its arguments, and changes nothing. Applied
 * in full, a second plan of the same file has no step.
 */
export function planOf(desired: Desired, actual: Actual, options: PlanOptions = {}): Plan {
  const index = indexLinks(actual.links)
  const matches = matchNodes(desired, actual, options)
  const matchedLinks = matchLinks(desired.links, actual, matches, index)
  const resolved = resolveLinks(desired.lab, matchedLinks, actual, matches)

  const used = usedPorts(resolved, matches)
  const positions = newPositions(desired, actual, matches)
  const nodes = matches.all.map((match) => {
    const key = nameKey(match.want.name)
    const foreign = match.have === undefined ? [] : foreignPorts(index, match.have.node_id)
    const ports = segmentPorts(match, used.get(key) ?? new Map(), foreign)
    return diffNode(match, { actual, options, position: positions.get(key), ports })
  })

  const nodesByName = new Map(nodes.map((decision) => [nameKey(decision.match.want.name), decision]))
  const linkNames = new Set(desired.links.flatMap(({ name }) => (name === undefined ? [] : [nameKey(name)])))
  const links = resolved.map((link) => diffLink(link, { actual, options, index, linkNames, nodes: nodesByName }))
  const replaced = new Set(links.flatMap((decision) => decision.replaced))

  const keptLinks = new Set(resolved.map(({ have }) => have))
  const linksNotInFile = [...actual.links.values()].filter((link) => !keptLinks.has(link) && !replaced.has(link))
  const nodesNotInFile = [...actual.nodes.values()].filter(({ node_id }) => !matches.byId.has(node_id))

  const deletions = [...replaced].map((link) => deleteLink(link, actual, 'it is at a port of a link of the file'))
  const starts = nodes.flatMap((decision) => startNode(decision, actual, options))
  const parts: PlanPart[] = [
    renameProject(desired, actual),
    ...nodes,
    onlySteps(deletions),
    ...links,
    ...linksNotInFile.map((link) => removeLink(link, actual)),
    ...nodesNotInFile.map((node) => removeNode(node, options)),
    setTasks(desired, actual),
    onlySteps(starts),
  ]
  return {
    steps: inOrder(parts.flatMap(({ steps }) => steps)),
    withheld: parts.flatMap(({ withheld }) => withheld),
    extra: parts.flatMap(({ extra }) => extra),
    marks: new Map(
      nodes.flatMap(({ match: { want, have }, isMarked }) => (isMarked && have ? [[have.node_id, want] as const] : [])),
    ),
    linksToMark: links.flatMap(({ marked }) => marked ?? []),
    cannotRun: [],
    found: new Map(matches.all.filter(isPresent).map(({ want, have }) => [want, have])),
  }
}

/** Positions for the nodes that are created and that the file does not place, around those that the lab has. */
function newPositions(
  desired: Desired,
  { nodes }: Actual,
  matches: NodeMatches,
): Map<string, { x: number; y: number }> {
  const isPlaced = ({ want: { settings } }: NodeMatch) => settings.x !== undefined || settings.y !== undefined
  if (matches.all.every((match) => isPresent(match) || isPlaced(match))) return new Map()
  const nameOf = ({ node_id, name }: NodeRecord) => matches.byId.get(node_id)?.want.name ?? name
  return mapPositions(desired, new Map([...nodes.values()].map((node) => [nameKey(nameOf(node)), node])))
}

const onlySteps = (steps: PlanPart['steps']): PlanPart => ({ steps, withheld: [], extra: [] })

/** Gives the project the tasks of the file, if it says which there are. */
function setTasks(desired: Desired, { tasks: present, project }: Actual): PlanPart {
  const tasks = keptTasks(desired)
  const isSame = same(tasks, present && omit(present, 'by'))
  if (desired.tasks === undefined || isSame) return onlySteps([])
  const because = 'its tasks'
  return onlySteps([
    stepOf({ do: 'update', what: 'project', name: project.name, how: 'live', because }, { type: 'tasks', tasks }),
  ])
}

/** Gives the project the name of the lab. */
function renameProject({ lab: name }: Desired, { project }: Actual): PlanPart {
  if (project.name === name) return onlySteps([])
  const because = `its name is ${project.name}`
  return onlySteps([stepOf({ do: 'update', what: 'project', name, how: 'live', because }, { type: 'project', name })])
}
