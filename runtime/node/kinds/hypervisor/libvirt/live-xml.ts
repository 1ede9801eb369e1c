import { conflict } from '../../../../../src/errors/api-error.ts'
import type { VmPlan } from '../driver.ts'
import { devicesOf, domainNameOf, ramOf, requireMachine } from './definition.ts'
import { plugIn, plugInSaved } from './interfaces.ts'
import { append, child, children, documentOf, type Element, parseXml, removeChildren, xmlText } from './xml.ts'

const loopback = '127.0.0.1'

/** What a VM is started with: its definition but for what the plan says. The definition itself is never touched. */
export function liveXml(definition: string, uuid: string, plan: VmPlan): string {
  const domain = parseXml(definition)
  requireMachine(domain)
  if (plan.ram !== undefined && plan.ram !== ramOf(domain)) setRam(domain, plan.ram)
  plugIn(domain, uuid, plan)
  serveSerial(domain, plan.serialPort)
  serveScreen(domain, plan.screen)
  return xmlText(domain)
}

/** What a VM goes on with whose memory was saved with this XML: what the guest sees stays, what it leads to is new. */
export function resumedXml(saved: string, uuid: string, plan: VmPlan): string {
  const domain = parseXml(saved)
  requireMachine(domain)
  plugInSaved(domain, uuid, plan)
  serveSerial(domain, plan.serialPort)
  serveScreen(domain, plan.screen)
  return xmlText(domain)
}

export function setRam(domain: Element, mb: number): void {
  const topology = child(domain, 'cpu') && child(child(domain, 'cpu') as Element, 'numa')
  const cells = topology === undefined ? [] : children(topology, 'cell')
  if (cells.length > 1) {
    throw conflict(`"${domainNameOf(domain)}" has its memory in ${cells.length} NUMA cells: its ram cannot be set`)
  }
  const inKib = { unit: 'KiB', value: String(mb * 1024) }
  for (const cell of cells) {
    cell.setAttribute('memory', inKib.value)
    cell.setAttribute('unit', inKib.unit)
  }
  for (const name of ['memory', 'currentMemory']) {
    const element = child(domain, name)
    if (element === undefined) continue
    element.setAttribute('unit', inKib.unit)
    element.textContent = inKib.value
  }
}

/** Its first serial port at a TCP port as it is; a console on that port is the same, and libvirt shows it again by itself. */
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

/** Whether its first serial port is at that TCP port. */
export function servesSerial(domain: Element, port: number): boolean {
  const [serial] = children(devicesOf(domain), 'serial')
  return serial !== undefined && child(serial, 'source')?.getAttribute('service') === String(port)
}

/** Screens of other kinds stay: devices of the guest may need them. */
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
  graphics.setAttribute('port', String(screen.port))
  graphics.setAttribute('autoport', 'no')
  const listen = documentOf(graphics).createElement('listen')
  listen.setAttribute('type', 'address')
  listen.setAttribute('address', screen.host)
  graphics.insertBefore(listen, graphics.firstChild)
}
