import { createHash } from 'node:crypto'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { VmAdapter, VmPlan } from '../driver.ts'
import { devicesOf, domainNameOf, interfacesOf, isUsed } from './definition.ts'
import { append, child, childOrNew, children, descendant, type Element, insert } from './xml.ts'

/** Limit of adapters of a VM, the same as in VirtualBox. */
export const maxLibvirtAdapters = 36
const loopback = '127.0.0.1'

/** Elements that stay when the backend changes. */
const guestSide: ReadonlySet<string> = new Set(['mac', 'model', 'driver', 'boot', 'rom', 'alias', 'acpi', 'address'])
/** Attributes of `driver` that a UDP tunnel does not support. */
const backendAttributes = ['name', 'queues', 'tx_queue_size']
/** Elements that depend on the model. */
const modelSide: ReadonlySet<string> = new Set(['model', 'driver', 'address'])

/** A locally administered MAC address, always the same for a VM and an adapter. */
export function macOfInterface(uuid: string, index: number): string {
  const hash = createHash('sha256').update(`${uuid}/${index}`).digest('hex')
  return `52${hash.slice(0, 10)}`.replace(/(..)(?=.)/g, '$1:')
}

export const macIn = (adapter: Element): string => child(adapter, 'mac')?.getAttribute('address')?.toLowerCase() ?? ''

/** Connects the ports of the plan to adapters of the VM. Adapters in other use stay unless `useAnyAdapter`. */
export function plugIn(domain: Element, uuid: string, plan: VmPlan): void {
  const present = interfacesOf(domain)
  for (const adapter of plan.adapters) {
    const own = present[adapter.index]
    if (own === undefined) {
      const type = adapter.type ?? plan.adapterType
      attach(newInterface(domain, macOfInterface(uuid, adapter.index), type), adapter)
    } else if (plan.useAnyAdapter || !isUsed(own)) {
      remodel(own, adapter.type ?? plan.adapterType)
      attach(own, adapter)
    }
  }
}

/** The same for a saved VM: only backends can change. 409 when the number of adapters has changed. */
export function plugInSaved(domain: Element, uuid: string, plan: VmPlan): void {
  const present = interfacesOf(domain)
  const added = new Map(Array.from({ length: maxLibvirtAdapters }, (_, index) => [macOfInterface(uuid, index), index]))
  const byIndex = new Map(present.map((it, position) => [added.get(macIn(it)) ?? position, it]))
  const planned = new Set(plan.adapters.map(({ index }) => index))
  const isLacking = plan.adapters.some(({ index }) => !byIndex.has(index))
  const hasSurplus = present.some((it) => added.has(macIn(it)) && !planned.has(added.get(macIn(it)) ?? 0))
  if (isLacking || hasSurplus) {
    const remedy = `set adapters back to ${present.length}, or discard what was saved (virsh managedsave-remove)`
    throw conflict(`"${domainNameOf(domain)}" was saved with ${present.length} adapters: ${remedy}`)
  }
  for (const adapter of plan.adapters) {
    const own = byIndex.get(adapter.index)
    if (own !== undefined && (plan.useAnyAdapter || !isUsed(own) || isOurs(own))) attach(own, adapter)
  }
}

/** The adapter of a running VM on that UDP port, with its new link state. */
export function recabled(domain: Element, { guestPort, carrier }: VmAdapter): Element | undefined {
  const own = interfacesOf(domain).find((it) => isOurs(it) && localPortOf(it) === String(guestPort))
  if (own !== undefined) setCable(own, carrier)
  return own
}

const localPortOf = (adapter: Element) => descendant(adapter, 'source', 'local')?.getAttribute('port')

/** Whether the backend is a UDP tunnel on this host. */
const isOurs = (adapter: Element): boolean =>
  adapter.getAttribute('type') === 'udp' && child(adapter, 'source')?.getAttribute('address') === loopback

function newInterface(domain: Element, address: string, type: string): Element {
  const created = append(devicesOf(domain), 'interface')
  append(created, 'mac', { address })
  append(created, 'model', { type })
  return created
}

/** Changes the model. The address goes, because another model may need another bus. */
function remodel(adapter: Element, type: string): void {
  if (child(adapter, 'model')?.getAttribute('type') === type) return
  for (const part of children(adapter)) if (modelSide.has(part.nodeName)) adapter.removeChild(part)
  append(adapter, 'model', { type })
}

function attach(adapter: Element, { guestPort, switchPort, carrier }: VmAdapter): void {
  for (const part of children(adapter)) if (!guestSide.has(part.nodeName)) adapter.removeChild(part)
  for (const { name } of [...adapter.attributes]) if (name !== 'type') adapter.removeAttribute(name)
  for (const name of backendAttributes) child(adapter, 'driver')?.removeAttribute(name)
  adapter.setAttribute('type', 'udp')
  const source = insert(adapter, 'source', { address: loopback, port: switchPort }, adapter.firstChild)
  append(source, 'local', { address: loopback, port: guestPort })
  setCable(adapter, carrier)
}

function setCable(adapter: Element, carrier: boolean): void {
  childOrNew(adapter, 'link').setAttribute('state', carrier ? 'up' : 'down')
}
