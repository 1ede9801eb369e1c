import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { VmPlan } from '../driver.ts'
import { devicesOf, domainNameOf, ramOf, requireMachine } from './definition.ts'
import { plugIn, plugInSaved } from './interfaces.ts'
import {
  append,
  child,
  children,
  descendant,
  type Element,
  insert,
  parseXml,
  removeChildren,
  setAttributes,
  xmlText,
} from './xml.ts'

const loopback = '127.0.0.1'

/** The XML of a run: the definition with the settings of the plan. */
export function liveXml(definition: string, uuid: string, plan: VmPlan): string {
  const domain = parseXml(definition)
  requireMachine(domain)
  if (plan.ram !== undefined && plan.ram !== ramOf(domain)) setRam(domain, plan.ram)
  plugIn(domain, uuid, plan)
  return withConsoles(domain, plan)
}

/** The XML of a restore: the guest keeps its devices, and their backends are those of the plan. */
export function resumedXml(saved: string, uuid: string, plan: VmPlan): string {
  const domain = parseXml(saved)
  requireMachine(domain)
  plugInSaved(domain, uuid, plan)
  return withConsoles(domain, plan)
}

function withConsoles(domain: Element, { serialPort, screen }: VmPlan): string {
  serveSerial(domain, serialPort)
  serveScreen(domain, screen)
  return xmlText(domain)
}

export function setRam(domain: Element, mb: number): void {
  const cells = children(descendant(domain, 'cpu', 'numa'), 'cell')
  if (cells.length > 1)
    throw conflict(`"${domainNameOf(domain)}" has its memory in ${cells.length} NUMA cells: its ram cannot be set`)
  const kib = String(mb * 1024)
  for (const cell of cells) setAttributes(cell, { memory: kib, unit: 'KiB' })
  for (const element of ['memory', 'currentMemory'].flatMap((name) => children(domain, name))) {
    element.setAttribute('unit', 'KiB')
    element.textContent = kib
  }
}

/** Serves the first serial port raw on a TCP port. libvirt recreates the console element of that port. */
function serveSerial(domain: Element, port: number): void {
  const devices = devicesOf(domain)
  const serial = children(devices, 'serial')[0] ?? append(devices, 'serial')
  for (const name of ['source', 'protocol']) removeChildren(serial, name)
  for (const { name } of [...serial.attributes]) serial.removeAttribute(name)
  serial.setAttribute('type', 'tcp')
  append(serial, 'source', { mode: 'bind', host: loopback, service: port })
  append(serial, 'protocol', { type: 'raw' })
  for (const console of children(devices, 'console')) {
    const type = child(console, 'target')?.getAttribute('type') ?? 'serial'
    if (type === 'serial') devices.removeChild(console)
  }
}

/** Whether the first serial port is on that TCP port. */
export function servesSerial(domain: Element, port: number): boolean {
  return descendant(devicesOf(domain), 'serial', 'source')?.getAttribute('service') === String(port)
}

/** Serves the screen by VNC. Screens of other types stay, because devices of the guest may need them. */
function serveScreen(domain: Element, screen: VmPlan['screen']): void {
  const devices = devicesOf(domain)
  const [first, ...others] = children(devices, 'graphics').filter((it) => it.getAttribute('type') === 'vnc')
  for (const other of others) devices.removeChild(other)
  if (screen === undefined) {
    if (first !== undefined) devices.removeChild(first)
    return
  }
  const graphics = first ?? append(devices, 'graphics', { type: 'vnc' })
  for (const name of ['listen', 'socket', 'websocket', 'autoport', 'port']) graphics.removeAttribute(name)
  removeChildren(graphics, 'listen')
  setAttributes(graphics, { port: screen.port, autoport: 'no' })
  insert(graphics, 'listen', { type: 'address', address: screen.host }, graphics.firstChild)
}
