import { createHash } from 'node:crypto'
import { conflict } from '../../../../../src/errors/api-error.ts'
import type { VmAdapter, VmPlan } from '../driver.ts'
import { devicesOf, domainNameOf, interfacesOf, isUsed } from './definition.ts'
import { append, child, childOrNew, children, documentOf, type Element, setAttributes } from './xml.ts'

/** How many adapters a VM can have here; as with VirtualBox. */
export const maxLibvirtAdapters = 36
const loopback = '127.0.0.1'

/** What is the guest's side of an adapter, or the user's: it stays when another backend takes its place. */
const guestSide: ReadonlySet<string> = new Set(['mac', 'model', 'driver', 'boot', 'rom', 'alias', 'acpi', 'address'])
/** Of the driver, what only some backends can do; a tunnel cannot. */
const backendAttributes = ['name', 'queues', 'tx_queue_size']
/** What is of one model only. */
const modelSide: ReadonlySet<string> = new Set(['model', 'driver', 'address'])

/** The address of an adapter that has none yet: always the same for a VM, and of no manufacturer. */
export function macOfInterface(uuid: string, index: number): string {
  const hash = createHash('sha256').update(`${uuid}/${index}`).digest('hex')
  return `52${hash.slice(0, 10)}`.replace(/(..)(?=.)/g, '$1:')
}

export const macIn = (adapter: Element): string => child(adapter, 'mac')?.getAttribute('address')?.toLowerCase() ?? ''

/** Makes the ports of the plan adapters of the VM; others, and those that it uses for something else, stay as they are. */
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

/** The same for a VM whose memory was saved: its adapters are what they were, only their backends can change; 409. */
export function plugInSaved(domain: Element, uuid: string, plan: VmPlan): void {
  const present = interfacesOf(domain)
  const added = new Map(Array.from({ length: maxLibvirtAdapters }, (_, index) => [macOfInterface(uuid, index), index]))
  const byIndex = new Map(present.map((it, place) => [added.get(macIn(it)) ?? place, it]))
  const wanted = new Set(plan.adapters.map(({ index }) => index))
  const lacking = plan.adapters.some(({ index }) => !byIndex.has(index))
  const surplus = present.some((it) => added.has(macIn(it)) && !wanted.has(added.get(macIn(it)) ?? 0))
  if (lacking || surplus) {
    const remedy = `set adapters back to ${present.length}, or discard what was saved (virsh managedsave-remove)`
    throw conflict(`"${domainNameOf(domain)}" was saved with ${present.length} adapters: ${remedy}`)
  }
  for (const adapter of plan.adapters) {
    const own = byIndex.get(adapter.index)
    if (own !== undefined && (plan.useAnyAdapter || !isUsed(own) || isOurs(own))) attach(own, adapter)
  }
}

/** The adapter of a running VM that leads to the switch there, with or without a cable in it; undefined when it has none. */
export function recabled(domain: Element, { guestPort, carrier }: VmAdapter): Element | undefined {
  const own = interfacesOf(domain).find((it) => isOurs(it) && localPortOf(it) === String(guestPort))
  if (own !== undefined) setCable(own, carrier)
  return own
}

const sourceOf = (adapter: Element) => child(adapter, 'source')
const localPortOf = (adapter: Element) => {
  const source = sourceOf(adapter)
  return source === undefined ? undefined : child(source, 'local')?.getAttribute('port')
}

/** Whether it is a tunnel to this machine. */
const isOurs = (adapter: Element): boolean =>
  adapter.getAttribute('type') === 'udp' && sourceOf(adapter)?.getAttribute('address') === loopback

function newInterface(domain: Element, address: string, type: string): Element {
  const created = append(devicesOf(domain), 'interface')
  append(created, 'mac', { address })
  append(created, 'model', { type })
  return created
}

/** Another model may not fit where this one is: libvirt finds it a place. */
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
  const source = documentOf(adapter).createElement('source')
  adapter.insertBefore(source, adapter.firstChild)
  setAttributes(source, { address: loopback, port: switchPort })
  append(source, 'local', { address: loopback, port: guestPort })
  setCable(adapter, carrier)
}

function setCable(adapter: Element, carrier: boolean): void {
  childOrNew(adapter, 'link').setAttribute('state', carrier ? 'up' : 'down')
}
