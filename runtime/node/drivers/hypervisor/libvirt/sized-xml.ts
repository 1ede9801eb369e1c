import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { ApplianceRun } from '../driver.ts'
import { domainNameOf, ramOf, requireMachine } from './definition.ts'
import { setRam } from './live-xml.ts'
import { child, childOrNew, children, type Element, parseXml, removeChildren, textOf, xmlText } from './xml.ts'

/** The definition with another size (`ram` in MB); undefined when the size is that of the definition. */
export function sizedXml(definition: string, { ram, vcpus }: NonNullable<ApplianceRun['size']>): string | undefined {
  const domain = parseXml(definition)
  requireMachine(domain)
  if (ramOf(domain) === ram && vcpusOf(domain) === vcpus) return undefined
  if (ramOf(domain) !== ram) setRam(domain, ram)
  if (vcpusOf(domain) !== vcpus) setVcpus(domain, vcpus)
  return xmlText(domain)
}

/** The number of processors at the start. */
function vcpusOf(domain: Element): number {
  const element = child(domain, 'vcpu')
  return Number(element?.getAttribute('current') ?? (textOf(element) || 1))
}

function setVcpus(domain: Element, count: number): void {
  const cpu = child(domain, 'cpu')
  const [cell, ...others] = children(child(cpu, 'numa'), 'cell')
  if (others.length > 0)
    throw conflict(`"${domainNameOf(domain)}" has its processors in NUMA cells: set allocate_vcpus_ram to false`)
  cell?.setAttribute('cpus', count === 1 ? '0' : `0-${count - 1}`)
  const element = childOrNew(domain, 'vcpu')
  element.removeAttribute('current')
  element.textContent = String(count)
  // Settings of single processors do not fit another number.
  removeChildren(domain, 'vcpus')
  if (cpu !== undefined) removeChildren(cpu, 'topology')
  const tuning = child(domain, 'cputune')
  for (const pin of children(tuning, 'vcpupin')) if (Number(pin.getAttribute('vcpu')) >= count) tuning?.removeChild(pin)
}
