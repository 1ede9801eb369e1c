import type { PortAllocator } from '../../ports/allocator.ts'
import type { VmKindNode } from './properties.ts'

/** The ports that a hypervisor opens for VMs of ours: those of their screens, and their serial ports while they run. */
export class VmPorts {
  readonly #ports: PortAllocator

  constructor(ports: PortAllocator) {
    this.#ports = ports
  }

  /** Of a node that ran when it was last heard of. */
  adopt(node: VmKindNode): void {
    const { remote_console, serial_port } = node.record.properties
    if (remote_console !== null) this.#ports.adopt('vnc', remote_console, screenOwner(node))
    if (serial_port !== null) this.#ports.adopt('console', serial_port, serialOwner(node))
  }

  /** The serial port that it had, or another one when a program has taken that meanwhile. */
  async serial(node: VmKindNode): Promise<number> {
    this.releaseSerial(node)
    return this.#ports.allocate('console', serialOwner(node), node.record.properties.serial_port ?? undefined)
  }

  /** The same of its screen; null when it shows none. */
  async screen(node: VmKindNode): Promise<number | null> {
    const { enable_remote_console, remote_console } = node.record.properties
    this.releaseScreen(node)
    return enable_remote_console ? this.newScreen(node, remote_console ?? undefined) : null
  }

  newScreen(node: VmKindNode, wanted?: number): Promise<number> {
    // A change that failed after this may have left one.
    this.releaseScreen(node)
    return this.#ports.allocate('vnc', screenOwner(node), wanted)
  }

  releaseSerial(node: VmKindNode): void {
    this.#ports.releaseAll(serialOwner(node))
  }

  releaseScreen(node: VmKindNode): void {
    this.#ports.releaseAll(screenOwner(node))
  }
}

const screenOwner = ({ projectId, key }: VmKindNode): string => `${projectId}/${key}/screen`
const serialOwner = ({ projectId, key }: VmKindNode): string => `${projectId}/${key}/serial`
