import { expect, onTestFinished } from 'vitest'
import { type Lease, leasePorts } from './port-leases.ts'

/** Leases of the test file that this process runs, which were not made within a test. */
let ofFile: Lease[] = []
let file: string | undefined
/** Leases of tests that have ended: what such a test still closes has them until the next test of this process asks for ports. */
let ended: Lease[] = []

/**
 * The first of `count` ports in a row that no other test has: until the test ends, or outside of a test until this process runs
 * another test file.
 */
export function freePorts(count: number): number {
  const { testPath } = expect.getState()
  if (testPath !== file) {
    ended.push(...ofFile)
    ofFile = []
    file = testPath
  }
  for (const lease of ended) lease.release()
  ended = []
  const lease = leasePorts(count)
  try {
    onTestFinished(() => void ended.push(lease))
  } catch {
    ofFile.push(lease)
  }
  return lease.first
}

/** A port that no other test has, for as long as those of `freePorts`. */
export const freePort = (): number => freePorts(1)

/** How many ports of each kind a service has. */
export const usualPorts = { console: 60, udp: 80, vnc: 10 }

/** Port ranges of a service, as settings: ports that no other test has. `sizes`: how many of each kind. */
export function portRanges(sizes: Partial<typeof usualPorts> = {}): Record<string, [number, number]> {
  const all = { ...usualPorts, ...sizes }
  return rangesFrom(freePorts(all.console + all.udp + all.vnc), all)
}

/** The same, of ports that a lease has. */
export const rangesFrom = (first: number, { console, udp, vnc } = usualPorts): Record<string, [number, number]> => ({
  console_port_range: [first, first + console - 1],
  udp_port_range: [first + console, first + console + udp - 1],
  vnc_port_range: [first + console + udp, first + console + udp + vnc - 1],
})

/** The same as command-line arguments. */
export const portArguments = (): string[] =>
  Object.entries(portRanges()).map(([name, [first, last]]) => `--${name.replaceAll('_', '-')}=${first}-${last}`)
