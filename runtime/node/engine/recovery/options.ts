import type { EventPayload } from '../../../../src/model/event.ts'
import type { NodeKindName } from '../../../../src/model/kinds/node.ts'
import type { Log } from '../../os/log/log.ts'
import type { DirectLinks } from '../nodes/direct-links.ts'
import type { KeeperLink } from '../nodes/keeper-link.ts'
import type { NodeKind } from '../nodes/kind.ts'
import type { NodeLifecycle } from '../nodes/lifecycle.ts'
import type { Links } from '../nodes/links.ts'
import type { ConsoleListeners } from '../nodes/listening.ts'
import type { NodeTable } from '../nodes/node-table.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'

/** What the parts of the recovery have in common. */
export interface RecoveryOptions {
  readonly kinds: Readonly<Record<NodeKindName, NodeKind>>
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly links: Links
  readonly direct: DirectLinks
  readonly lifecycle: NodeLifecycle
  readonly listening: ConsoleListeners
  readonly table: NodeTable
  readonly nodes: Pick<Nodes, 'finishRemoval'>
  /** Finishes the close or deletion of projects, which waited for the state of their nodes. */
  readonly finishProjects: () => Promise<void>
  readonly emit: (project: OpenProject, payload: EventPayload) => void
  readonly log: Log
}

export function warn({ emit }: Pick<RecoveryOptions, 'emit'>, project: OpenProject, messages: readonly string[]): void {
  for (const message of messages) emit(project, { type: 'log.warning', message })
}
