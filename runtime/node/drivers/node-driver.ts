import type { Static, TObject, TProperties } from '@sinclair/typebox'
import type { DoctorCheck } from '../../../src/model/host.ts'
import type { KindDescriptor } from '../../../src/model/kinds/kind.ts'
import type { Images } from '../engine/images/images.ts'
import type { KeeperLink } from '../engine/nodes/keeper-link.ts'
import type { KindListener, KindNode, NodeKind, Properties } from '../engine/nodes/kind.ts'
import type { PortAllocator } from '../engine/ports/allocator.ts'
import type { InterfaceRules } from '../os/host/allowed-interfaces.ts'
import type { Log } from '../os/log/log.ts'
import type { Sandbox } from '../os/sandbox/sandbox.ts'
import type { Drivers } from './hypervisor/drivers.ts'

/** The services of the host for a driver; `P`: the properties of its nodes, `S`: its settings. */
export interface DriverHost<P extends Properties = Properties, S = Readonly<Record<string, unknown>>> {
  /** The settings in force. */
  settings(): S
  readonly isLocal: () => boolean
  readonly sandbox: Sandbox
  readonly images: Pick<Images, 'library' | 'executables' | 'md5Of' | 'write'>
  readonly ports: PortAllocator
  /** The network devices that nodes may use. */
  readonly interfaces: () => InterfaceRules
  /** The setting udp_peers. */
  readonly udpPeers: () => readonly string[]
  readonly keeper: Pick<KeeperLink, 'call' | 'packetPath' | 'tidyNetio'>
  /** The drivers of hypervisors. */
  readonly drivers: Drivers
  /** A directory for runtime files, outside backups. */
  readonly runDirectory: string
  /** The address on which emulators serve screens. */
  readonly consoleHost: string
  readonly minFreeMb: () => number
  readonly listener: KindListener
  readonly log: Log
  /** Timeouts of the kind that tests make shorter, ms. */
  readonly timeouts: Readonly<Record<string, number>>
  /** All nodes of the kind on this host. */
  nodes(): Iterable<KindNode<P>>
}

/**
 * How a host runs nodes of a kind. `open` and `doctor` load further modules on demand, because most commands of the program run no nodes;
 * `open` gives what the engine calls.
 */
export interface NodeDriver<
  D extends KindDescriptor = KindDescriptor,
  S extends TProperties = TProperties,
  P extends Properties = Properties,
> {
  readonly descriptor: D
  /** Its group of settings, named like the kind with `_` for `-`. */
  readonly settings?: S
  /**
   * Whether a file is listed as an image of the kind, because image directories may be shared. `name`: the name of the file, or another one that
   * it may get.
   */
  isImage?(file: string, name: string): boolean | Promise<boolean>
  /** Checks the requirements of its nodes. `images`: the directories that may have images of the kind. */
  doctor?(
    settings: Static<TObject<S>>,
    signal?: AbortSignal,
    images?: readonly string[],
  ): Promise<readonly DoctorCheck[]>
  open(host: DriverHost<P, Static<TObject<S>>>): Promise<NodeKind<P, D>>
}
