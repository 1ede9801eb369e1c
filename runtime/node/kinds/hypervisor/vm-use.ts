import { conflict } from '../../../../src/errors/api-error.ts'
import type { Vm } from './driver.ts'
import type { VmKindNode } from './properties.ts'

/** Which nodes have a VM, and which one runs it. A VM runs once. */
export class VmUse {
  readonly #nodes: () => Iterable<VmKindNode>
  /** Nodes that are being made, or were. */
  readonly #made = new Map<string, VmKindNode>()
  /** Nodes that are being started, or run. */
  readonly #launched = new Set<string>()

  /** `nodes`: all of the kind on this host. */
  constructor(nodes: () => Iterable<VmKindNode>) {
    this.#nodes = nodes
  }

  made(node: VmKindNode): void {
    this.#made.set(node.key, node)
  }

  /** The node is about to run its VM; 409 when another one does: its project was closed when that was made. */
  launched(node: VmKindNode): void {
    const { vm_uuid, vmname } = node.record.properties
    const holder = this.nodesOf(vm_uuid).find((it) => it.key !== node.key && this.#runs(it))
    if (holder !== undefined) throw conflict(`${holder.record.name} runs the VM ${vmname} already: stop it first`)
    this.#launched.add(node.key)
  }

  over({ key }: VmKindNode): void {
    this.#launched.delete(key)
  }

  forget({ key }: VmKindNode): void {
    this.#made.delete(key)
    this.#launched.delete(key)
  }

  /** 409 when another node has it: two cannot both have it. */
  requireUnused(node: VmKindNode, vm: Vm): void {
    const holder = this.nodesOf(vm.uuid).find(({ key }) => key !== node.key)
    if (holder === undefined) return
    throw conflict(`vmname: ${holder.record.name} has the VM ${vm.name} already; use linked_clone`)
  }

  /** What nodes do with it: none has it, one has it that does not run, or one runs it. */
  of(uuid: string): 'none' | 'held' | 'runs' {
    const nodes = this.nodesOf(uuid)
    if (nodes.some((it) => this.#runs(it))) return 'runs'
    return nodes.length > 0 ? 'held' : 'none'
  }

  nodesOf(uuid: string): VmKindNode[] {
    const nodes = new Set([...this.#nodes(), ...this.#made.values()])
    return [...nodes].filter(({ record }) => record.properties.vm_uuid === uuid)
  }

  #runs({ key, status }: VmKindNode): boolean {
    return status !== 'stopped' || this.#launched.has(key)
  }
}
