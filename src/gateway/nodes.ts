import type { HostAgent, NodeAgent } from '../host-agent.ts'
import type { NodeRef } from '../kinds/node.ts'
import { type BringImage, withImages } from './image-copies.ts'
import type { AskOwner } from './project-locator.ts'

/** Asks the compute that has the node's project. */
type At = <T>(ref: NodeRef, use: (agent: HostAgent) => Promise<T>) => Promise<T>

const atOf =
  (owner: AskOwner): At =>
  (ref, use) =>
    owner(ref.project_id, use)

export function gatewayNodes(owner: AskOwner, bring: BringImage): NodeAgent {
  const at = atOf(owner)
  return {
    list: (id, kind) => owner(id, ({ nodes }) => nodes.list(id, kind)),
    create: (id, kind, input, options) =>
      withImages(bring, { projectId: id, kind }, () =>
        owner(id, ({ nodes }) => nodes.create(id, kind, input, options)),
      ),
    get: (ref) => at(ref, ({ nodes }) => nodes.get(ref)),
    update: (ref, changes) =>
      withImages(bring, { projectId: ref.project_id, kind: ref.kind }, () =>
        at(ref, ({ nodes }) => nodes.update(ref, changes)),
      ),
    remove: (ref, options) => at(ref, ({ nodes }) => nodes.remove(ref, options)),
    start: (ref, input) => at(ref, ({ nodes }) => nodes.start(ref, input)),
    stop: (ref) => at(ref, ({ nodes }) => nodes.stop(ref)),
    suspend: (ref) => at(ref, ({ nodes }) => nodes.suspend(ref)),
    resume: (ref) => at(ref, ({ nodes }) => nodes.resume(ref)),
    reload: (ref) => at(ref, ({ nodes }) => nodes.reload(ref)),
    duplicate: (ref, destinationId) => at(ref, ({ nodes }) => nodes.duplicate(ref, destinationId)),
    attachNio: (ref, port, nio) => at(ref, ({ nodes }) => nodes.attachNio(ref, port, nio)),
    updateNio: (ref, port, nio) => at(ref, ({ nodes }) => nodes.updateNio(ref, port, nio)),
    detachNio: (ref, port) => at(ref, ({ nodes }) => nodes.detachNio(ref, port)),
    nioState: (ref, port) => at(ref, ({ nodes }) => nodes.nioState(ref, port)),
    startCapture: (ref, port, wanted) => at(ref, ({ nodes }) => nodes.startCapture(ref, port, wanted)),
    stopCapture: (ref, port) => at(ref, ({ nodes }) => nodes.stopCapture(ref, port)),
    followCapture: (ref, port, signal) => at(ref, ({ nodes }) => nodes.followCapture(ref, port, signal)),
    streamCapture: (ref, port, wanted, signal) =>
      at(ref, ({ nodes }) => nodes.streamCapture(ref, port, wanted, signal)),
    resetConsole: (ref) => at(ref, ({ nodes }) => nodes.resetConsole(ref)),
    console: (ref, signal) => at(ref, ({ nodes }) => nodes.console(ref, signal)),
    screen: (ref, signal) => at(ref, ({ nodes }) => nodes.screen(ref, signal)),
    action: (ref, ...rest) => at(ref, ({ nodes }) => nodes.action(ref, ...rest)),
  }
}
