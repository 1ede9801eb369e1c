import type { PortAllocator } from '../../engine/ports/allocator.ts'
import type { VmKindNode } from './properties.ts'

/** The ports of VMs: of their screens, and of their serial ports while they run. */
export class VmPorts {
  readonly #ports: PortAllocator

  constructor(ports: PortAllocator) {
    this.#ports = ports
  }

  /** Reserves the ports of a node that runs. */
  adopt(node: VmKindNode): void {
    const { remote_console, serial_port } = node.record.properties
    if (remote_console !== null) this.#ports.adopt('vnc', remote_console, screenOwner(node))
    if (serial_port !== null) this.#ports.adopt('console', serial_port, serialOwner(node))
  }

  /** A port for the serial port: the last one, or another if it is taken. */
  async serial(node: VmKindNode): Promise<number> {
    this.releaseSerial(node)
    return this.#ports.allocate('console', serialOwner(node), node.record.properties.serial_port ?? undefined)
  }

  /** A port for the screen, likewise; null without a screen. */
  async screen(node: VmKindNode): Promise<number | null> {
    const { enable_remote_console, remote_console } = node.record.properties
    this.releaseScreen(node)
    return enable_remote_console ? this.newScreen(node, remote_console ?? undefined) : null
  }

  newScreen(node: VmKindNode, preferred?: number): Promise<number> {
    // A failed change may have left a port.
    this.releaseScreen(node)
    return this.#ports.allocate('vnc', screenOwner(node), preferred)
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
