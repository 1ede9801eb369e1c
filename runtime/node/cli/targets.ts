import type { LabLink, LabNode, LabProject } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { isSegmentKind } from '../../../src/labfile/segment-kinds.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import type { CommandContext } from './client.ts'
import { CommandError, exits, notFound, wrongArguments } from './exits.ts'

/** A node by the names that a user gives: `LAB/NODE`, or `NODE` alone where one open lab has it. */
export interface NodeTarget {
  readonly lab: string
  readonly node: LabNode
}

/** A lab by its name or id; undefined: there is none. `opens`: it is opened when it is closed. */
export async function labIfAny(
  word: string,
  { client, signal }: CommandContext,
  { opens = false } = {},
): Promise<LabProject | undefined> {
  const params = { project_id: word }
  const lab = await client.call('GET /v2/projects/{project_id}', { params, signal }).catch((error) => {
    if (error instanceof PatchbayError && error.status === 404) return undefined
    throw error
  })
  const isClosed = lab !== undefined && lab.status !== 'opened'
  return opens && isClosed ? client.call('POST /v2/projects/{project_id}/open', { params, signal }) : lab
}

/** The same; CommandError 1 with the nearest name when there is none. */
export async function labOf(word: string, context: CommandContext, { opens = false } = {}): Promise<LabProject> {
  const lab = await labIfAny(word, context, { opens })
  if (lab !== undefined) return lab
  const { client, signal } = context
  const names = (await client.call('GET /v2/projects', { signal })).map(({ name }) => name)
  const message = `there is no lab ${JSON.stringify(word)} on ${client.server}`
  throw notFound(message, word, names, '"patchbay ls" lists them')
}

/** The node that a word names. CommandError 1 when there is none, or several open labs have one. */
export async function nodeOf(word: string, context: CommandContext): Promise<NodeTarget> {
  const { client, signal } = context
  const slash = word.indexOf('/')
  if (slash !== -1) {
    const lab = await labOf(word.slice(0, slash), context)
    const node = await nodeIn(lab, word.slice(slash + 1), context)
    return { lab: lab.name, node }
  }
  const labs = (await client.call('GET /v2/projects', { signal })).filter(({ status }) => status === 'opened')
  const found = (
    await mapLimit(labs, async ({ project_id, name }) => {
      const params = { project_id, node_id: word }
      return client
        .call('GET /v2/projects/{project_id}/nodes/{node_id}', { params, signal })
        .then((node): NodeTarget => ({ lab: name, node }))
        .catch((error) => {
          if (error instanceof PatchbayError && error.status === 404) return undefined
          throw error
        })
    })
  ).filter((it) => it !== undefined)
  const [one, ...others] = found
  if (one === undefined) {
    throw new CommandError(exits.failed, [
      { message: `no open lab has a node ${JSON.stringify(word)}`, hint: 'expected LAB/NODE, such as wan-edge/R1' },
    ])
  }
  if (others.length > 0)
    throw wrongArguments(`several labs have this node: ${found.map(({ lab }) => `${lab}/${word}`).join(', ')}`)
  return one
}

async function nodeIn(lab: LabProject, word: string, context: CommandContext): Promise<LabNode> {
  const { client, signal } = context
  const params = { project_id: lab.project_id, node_id: word }
  return client.call('GET /v2/projects/{project_id}/nodes/{node_id}', { params, signal }).catch(async (error) => {
    if (!(error instanceof PatchbayError) || error.code !== 'no-such-node') throw error
    const names = (await nodesOf(lab, context)).map(({ name }) => name)
    const message = `the lab ${lab.name} has no node ${JSON.stringify(word)}`
    throw notFound(message, word, names, `"patchbay inspect ${lab.name}" lists them`)
  })
}

/** By which lists for people are sorted: `PC2` is before `PC10`. */
export const nameOrder = new Intl.Collator('en', { numeric: true })

/** The nodes of an open lab; none of a closed one. */
export async function nodesOf(
  { project_id, status }: Pick<LabProject, 'project_id' | 'status'>,
  { client, signal }: CommandContext,
): Promise<LabNode[]> {
  if (status !== 'opened') return []
  return client.call('GET /v2/projects/{project_id}/nodes', { params: { project_id }, signal })
}

/**
 * The names of computes, by their ids, and the id of one whose name others have, too. Without the answer of the service, as for a token that
 * may not list them, every compute has its id.
 */
export async function computeNames({ client, signal }: CommandContext): Promise<(id: string) => string> {
  const none = (error: unknown) => {
    if (error instanceof PatchbayError) return []
    throw error
  }
  const all = await client.call('GET /v2/computes', { signal }).catch(none)
  return (id) => {
    const name = all.find(({ compute_id }) => compute_id === id)?.name ?? id
    return all.filter((other) => other.name === name).length > 1 ? id : name
  }
}

/** `2 of 3 nodes running`: segments are no nodes for people. */
export function runningText(nodes: Iterable<LabNode>): string {
  const withoutSegments = [...nodes].filter(({ node_type }) => !isSegmentKind(node_type))
  const running = withoutSegments.filter(({ status }) => status === 'started').length
  return `${running} of ${counted(withoutSegments.length, 'node')} running`
}

/** The links of an open lab; none of a closed one. */
export async function linksOf(
  { project_id, status }: Pick<LabProject, 'project_id' | 'status'>,
  { client, signal }: CommandContext,
): Promise<LabLink[]> {
  if (status !== 'opened') return []
  return client.call('GET /v2/projects/{project_id}/links', { params: { project_id }, signal })
}
