import type { Static, TObject, TProperties } from '@sinclair/typebox'
import type { KindDescriptor } from '../../../src/kinds/kind.ts'
import type { Check } from '../../../src/model/host.ts'
import type { Images } from '../images/images.ts'
import type { Log } from '../log/log.ts'
import type { KeeperLink } from '../nodes/keeper-link.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Drivers } from './hypervisor/drivers.ts'
import type { KindListener, KindNode, NodeKind, Properties } from './kind.ts'

/** What a host has for a kind; `P`: the properties of its nodes, `S`: its settings. */
export interface KindHost<P extends Properties = Properties, S = Readonly<Record<string, unknown>>> {
  /** Those in force. */
  settings(): S
  readonly isLocal: () => boolean
  readonly sandbox: Sandbox
  readonly images: Pick<Images, 'library' | 'executables' | 'md5Of'>
  readonly ports: PortAllocator
  readonly keeper: Pick<KeeperLink, 'call' | 'tidyNetio'>
  /** The managers of VMs on this host. */
  readonly drivers: Drivers
  /** For what is not worth a backup. */
  readonly runDirectory: string
  /** The address at which emulators show screens. */
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
 * How a host runs a kind. What needs more modules is loaded when it is called: the program reads its settings for every command, and
 * most commands run no nodes.
 */
export interface HostKind<
  D extends KindDescriptor = KindDescriptor,
  S extends TProperties = TProperties,
  P extends Properties = Properties,
> {
  readonly descriptor: D
  /** Its group of settings, which has the name of the kind with `_` for `-`. */
  readonly settings?: S
  /** Whether a file is shown as an image of the kind; directories of images often hold those of other kinds, too. */
  isImage?(file: string): boolean | Promise<boolean>
  /** What its nodes need of this machine. */
  doctor?(settings: Static<TObject<S>>, signal?: AbortSignal): Promise<readonly Check[]>
  open(host: KindHost<P, Static<TObject<S>>>): Promise<NodeKind<P, D>>
}
