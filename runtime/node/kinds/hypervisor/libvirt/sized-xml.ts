import { conflict } from '../../../../../src/errors/api-error.ts'
import { domainNameOf, ramOf, requireMachine } from './definition.ts'
import { setRam } from './live-xml.ts'
import { child, childOrNew, children, type Element, parseXml, removeChildren, textOf, xmlText } from './xml.ts'

export interface VmSize {
  /** MB. */
  readonly ram: number
  readonly vcpus: number
}

/** What a VM is started with: its definition but for its size; undefined when that is as it is defined. */
export function sizedXml(definition: string, { ram, vcpus }: VmSize): string | undefined {
  const domain = parseXml(definition)
  requireMachine(domain)
  const isSized = ramOf(domain) === ram && vcpusOf(domain) === vcpus
  if (isSized) return undefined
  if (ramOf(domain) !== ram) setRam(domain, ram)
  if (vcpusOf(domain) !== vcpus) setVcpus(domain, vcpus)
  return xmlText(domain)
}

/** Those that it starts with. */
function vcpusOf(domain: Element): number {
  const element = child(domain, 'vcpu')
  return Number(element?.getAttribute('current') ?? (textOf(element) || 1))
}

function setVcpus(domain: Element, count: number): void {
  const cpu = child(domain, 'cpu')
  const numa = cpu && child(cpu, 'numa')
  const [cell, ...others] = numa === undefined ? [] : children(numa, 'cell')
  if (others.length > 0) {
    throw conflict(`"${domainNameOf(domain)}" has its processors in NUMA cells: set allocate_vcpus_ram to false`)
  }
  cell?.setAttribute('cpus', count === 1 ? '0' : `0-${count - 1}`)
  const element = childOrNew(domain, 'vcpu')
  element.removeAttribute('current')
  element.textContent = String(count)
  // What is said of each processor does not fit another number of them.
  removeChildren(domain, 'vcpus')
  if (cpu !== undefined) removeChildren(cpu, 'topology')
  const tuning = child(domain, 'cputune')
  if (tuning === undefined) return
  for (const pin of children(tuning, 'vcpupin')) {
    if (Number(pin.getAttribute('vcpu')) >= count) tuning.removeChild(pin)
  }
}
