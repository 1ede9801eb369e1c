import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { Vm } from './driver.ts'
import type { VmKindNode } from './properties.ts'

/** Which nodes have a VM, and which node runs it. */
export class VmUse {
  readonly #nodes: () => Iterable<VmKindNode>
  /** Nodes that were created, also those under creation. */
  readonly #created = new Map<string, VmKindNode>()
  /** Nodes that start or run. */
  readonly #started = new Set<string>()

  constructor(nodes: () => Iterable<VmKindNode>) {
    this.#nodes = nodes
  }

  creating(node: VmKindNode): void {
    this.#created.set(node.key, node)
  }

  /** 409 when another node runs the VM; that node may be of a project that was closed at the creation of this node. */
  starting(node: VmKindNode): void {
    const { vm_uuid, vmname } = node.record.properties
    const holder = this.nodesOf(vm_uuid).find((it) => it.key !== node.key && this.#runs(it))
    if (holder !== undefined) throw conflict(`${holder.record.name} is already running the VM ${vmname}: stop it first`)
    this.#started.add(node.key)
  }

  ended({ key }: VmKindNode): void {
    this.#started.delete(key)
  }

  forget({ key }: VmKindNode): void {
    this.#created.delete(key)
    this.#started.delete(key)
  }

  /** 409 when another node has the VM. */
  requireUnused(node: VmKindNode, vm: Vm): void {
    const holder = this.nodesOf(vm.uuid).find(({ key }) => key !== node.key)
    if (holder === undefined) return
    throw conflict(`vmname: ${holder.record.name} already uses the VM ${vm.name}; use linked_clone`)
  }

  /** `held`: a node has the VM, but does not run it. */
  of(uuid: string): 'none' | 'held' | 'runs' {
    const nodes = this.nodesOf(uuid)
    if (nodes.some((it) => this.#runs(it))) return 'runs'
    return nodes.length > 0 ? 'held' : 'none'
  }

  nodesOf(uuid: string): VmKindNode[] {
    const nodes = new Set([...this.#nodes(), ...this.#created.values()])
    return [...nodes].filter(({ record }) => record.properties.vm_uuid === uuid)
  }

  #runs({ key, status }: VmKindNode): boolean {
    return status !== 'stopped' || this.#started.has(key)
  }
}
