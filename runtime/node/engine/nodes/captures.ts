import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { CaptureSource, PortRef } from '../../../../src/host-agent.ts'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { conflict, outOfSpace } from '../../../../src/lib/errors/api-error.ts'
import { type CaptureStart, type CaptureStarted, type CaptureStream, linkTypes } from '../../../../src/model/capture.ts'
import { linkTypeOn } from '../../dataplane/bpf/link-type.ts'
import type { Operations } from '../../keeper/protocol/protocol.ts'
import { webStream } from '../../os/system/web-stream.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { resolveInProject } from '../storage/paths.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import { lineOfPort } from './line.ts'
import type { Links } from './links.ts'
import { portKey, requirePort } from './slots.ts'

/** Directory of the captures in a project. */
const captures = 'project-files/captures'

/** The captures of ports. They run in the keeper and go on without the service. Callers hold the lock of the node. */
export class Captures {
  readonly #keeper: KeeperLink
  readonly #links: Links
  readonly #minFreeMb: () => number

  constructor(keeper: KeeperLink, links: Links, minFreeMb: () => number) {
    this.#keeper = keeper
    this.#links = links
    this.#minFreeMb = minFreeMb
  }

  async start(node: EngineNode, port: PortRef, wanted: CaptureStart): Promise<CaptureStarted> {
    const link_type = numberOf(node, port, wanted)
    const key = portKey(node, await this.#links.requireLinked(node, port))
    const root = node.project.path
    await requireSpace(root, this.#minFreeMb())
    return withDiskErrors('capture_file_name', async () => {
      const file = await resolveInProject(root, `${captures}/${wanted.capture_file_name}`)
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await this.#call('capture.start', { key, file, link_type, floor_mb: this.#minFreeMb() })
      return { pcap_file_path: file }
    })
  }

  async stop(node: EngineNode, port: PortRef): Promise<void> {
    await this.#call('capture.stop', { key: portKey(node, await this.#links.requireLinked(node, port)) })
  }

  async follow(node: EngineNode, port: PortRef, signal: AbortSignal): Promise<CaptureSource> {
    const key = portKey(node, await this.#links.requireLinked(node, port))
    return this.#attach(node, port, { key, from: 'file' }, signal)
  }

  async stream(node: EngineNode, port: PortRef, wanted: CaptureStream, signal: AbortSignal): Promise<CaptureSource> {
    const link_type = numberOf(node, port, wanted)
    const key = portKey(node, await this.#links.requireLinked(node, port))
    return this.#attach(node, port, { key, from: 'now', link_type, losses: wanted.losses === true }, signal)
  }

  async #attach(
    node: EngineNode,
    { adapter, port }: PortRef,
    wanted: Operations['capture.attach']['in'],
    signal: AbortSignal,
  ): Promise<CaptureSource> {
    const socket = await this.#keeper.attach('capture.attach', wanted).catch(refused)
    onAbort(signal, () => socket.destroy())
    if (signal.aborted) socket.destroy()
    const { name, node_id } = node.record
    return {
      pcap: webStream(socket),
      interface_name: `${name} ${adapter}/${port}`,
      comment: `Adapter ${adapter}, port ${port} of the ${node.record.kind} ${name} (${node_id})`,
    }
  }

  async #call<Op extends 'capture.start' | 'capture.stop'>(op: Op, input: Operations[Op]['in']): Promise<void> {
    await this.#keeper.call(op, input).catch(refused)
  }
}

/** The link type number of a pcap file; 404 for a missing port, 400. */
function numberOf(node: EngineNode, port: PortRef, { data_link_type }: CaptureStream): number {
  requirePort(node, port)
  return linkTypes[linkTypeOn(lineOfPort(node, port), data_link_type, 'data_link_type')]
}

function refused(error: unknown): never {
  const cause = error as Error
  switch (keeperErrorCode(error)) {
    case 'exists':
      throw conflict('The port is already being captured: stop that capture first', { cause })
    case 'not_running':
      throw conflict('The port is not being captured: start a capture first', { cause })
    case 'port_taken':
      throw conflict(`capture_file_name: ${cause.message}`, { cause })
    case 'disk_full':
      throw outOfSpace('capture_file_name: the disk is full; free some space first', { cause })
    case 'not_linked':
      throw conflict('Nothing is attached to the port: attach a NIO first', { code: 'nothing-attached', cause })
    case undefined:
      throw error
    default:
      throw conflict(`${cause.message}; try again`, { cause })
  }
}
