import { maxImages } from '../../fleet/images/image-copies.ts'
import type { HostAgent, NodeAction } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, missingImage } from '../../lib/errors/api-error.ts'
import { withoutSeparators } from '../../lib/errors/project-name.ts'
import type { TokenLimits } from '../../model/access/access-token.ts'
import type { Node, NodeCreate, NodeKindName, NodeRef } from '../../model/kinds/node.ts'
import type { Project } from '../../model/project.ts'

/** Gives the agent of a compute, on behalf of the caller of a request or of the service itself. */
export interface ComputeAgents {
  (computeId: string): HostAgent
  /** What the token of the caller may make and start; absent: no limits. See `labs/lab/token-limits.ts`. */
  readonly limits?: TokenLimits
}

/**
 * Creates or opens the project of a lab. A lab may have a name from an earlier version that no new project of a compute can have. Errors of
 * `ProjectAgent.create`.
 */
export async function openProject(
  agent: HostAgent,
  { name, ...input }: { project_id: string; name: string; path?: string | null },
): Promise<Project> {
  return (await agent.projects.create({ ...input, name: withoutSeparators(name) })).project
}

/** Errors of `ProjectAgent.update`. */
export const renameProject = (agent: HostAgent, id: string, name: string): Promise<Project> =>
  agent.projects.update(id, { name: withoutSeparators(name) })

/** Removes a project with its files; opens a closed one first, as a compute removes only open ones. */
export async function removeProject(agent: HostAgent, id: string): Promise<void> {
  await agent.projects.remove(id).catch(async (error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== 'project-closed') throw error
    // The name is for a new project only: this one keeps its own.
    await openProject(agent, { project_id: id, name: id })
    await agent.projects.remove(id)
  })
}

/** Repeats an operation after copying each image that the compute lacks. 409 with the reason when an image cannot be copied. */
export async function withImages<T>(agent: HostAgent, operation: () => Promise<T>): Promise<T> {
  const copied = new Set<string>()
  for (;;) {
    try {
      return await operation()
    } catch (error) {
      const image = error instanceof ApiError && error.code === 'image-missing' ? error.extra.image : undefined
      if (image === undefined || copied.has(image) || copied.size === maxImages) throw error
      copied.add(image)
      const outcome = await agent.images
        .replicate?.(image)
        .catch(ignore('the client gets the error about the missing image'))
      if (outcome === undefined) throw error
      if (outcome !== 'copied') throw missingImage(outcome.refused, image)
    }
  }
}

/**
 * Creates a node. 409 when the node exists, or, without `withImages`, when the compute lacks an image of it. The input has only members
 * that the compute checks.
 */
export const createOnCompute = async <K extends NodeKindName>(
  agent: HostAgent,
  projectId: string,
  kind: K,
  input: Pick<NodeRef, 'node_id'> & { readonly name: string },
  addresses?: 'stored',
): Promise<Node<K>> =>
  (await agent.nodes.create(projectId, kind, input as NodeCreate<K>, { existing: 'refuse', addresses })).node

/** Starts, stops, suspends, resumes or reloads a node. */
export const sendNodeAction = (agent: HostAgent, ref: NodeRef, action: NodeAction): Promise<Node> =>
  withImages(agent, () => agent.nodes[action](ref))
