import type { HostAgent, HostFacts } from '../../host-agent.ts'
import { forbidden } from '../../lib/errors/api-error.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import { type DoctorCheck, type Load, ofKinds } from '../../model/host.ts'
import { namedAction } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { type FanOut, longTimeouts } from '../members/fan-out.ts'
import { noCompute } from '../members/member-errors.ts'
import type { FleetMembers } from '../members/members.ts'

export interface GatewayHost {
  readonly version: string
  readonly metrics: HostFacts['metrics']
}

/** The facts about hosts that a gateway composes of those of its computes. */
export function gatewayHost(own: GatewayHost, members: FleetMembers, fanOut: FanOut): HostFacts {
  return {
    version: async () => ({ version: own.version, local: false }),
    async capabilities() {
      const all = (await fanOut.ask(({ host }) => host.capabilities())).map(({ value }) => value)
      const [first] = all
      const said: Readonly<Record<string, unknown>> = { ...first }
      return {
        version: own.version,
        platform: first?.platform ?? 'linux',
        node_types: [...new Set(all.flatMap(({ node_types }) => node_types))],
        packet_path: all.every(({ packet_path }) => packet_path === 'fast') ? 'fast' : 'portable',
        ...Object.fromEntries(Object.entries(ofKinds).map(([name, it]) => [name, said[name] ?? it.default])),
      }
    },
    async interfaces() {
      const found = await fanOut.union(
        ({ host }) => host.interfaces(),
        ({ name }) => name,
      )
      return found.sort((a, b) => compareText(a.name, b.name))
    },
    async ports() {
      const all = (await fanOut.ask(({ host }) => host.ports())).map(({ value }) => value)
      if (all.length === 0) throw noCompute()
      const range = (of: 'console_port_range' | 'vnc_port_range' | 'udp_port_range'): [number, number] => [
        Math.min(...all.map((ports) => ports[of][0])),
        Math.max(...all.map((ports) => ports[of][1])),
      ]
      const used = (of: 'console_ports' | 'vnc_ports' | 'udp_ports'): number[] =>
        [...new Set(all.flatMap((ports) => ports[of]))].sort((a, b) => a - b)
      return {
        console_port_range: range('console_port_range'),
        console_ports: used('console_ports'),
        vnc_port_range: range('vnc_port_range'),
        vnc_ports: used('vnc_ports'),
        udp_port_range: range('udp_port_range'),
        udp_ports: used('udp_ports'),
      }
    },
    load: async () => loadOf(members),
    metrics: own.metrics,
    async doctor() {
      const checks = (await members.all()).map(({ name, isConnected, load }): DoctorCheck => {
        if (!isConnected) {
          const fix = 'see its last_error at GET /v2/computes, and correct its record with PUT'
          return { name: `compute ${name}`, status: 'error', found: 'it is not connected', fix }
        }
        const figures = load && `, ${load.cpu_usage_percent} % CPU, ${load.memory_usage_percent} % memory`
        return { name: `compute ${name}`, status: 'ok', found: `connected${figures ?? ''}`, fix: null }
      })
      if (checks.length === 0) {
        const fix = 'add one with POST /v2/computes, or run patchbay serve --join on it'
        checks.push({ name: 'computes', status: 'error', found: 'none is registered', fix })
      }
      return { ok: checks.every(({ status }) => status !== 'error'), checks }
    },
    // As a compute outside local mode answers: a gateway is never in local mode.
    reloadConfig: async () => {
      throw forbidden('A gateway cannot reload its configuration: restart it to apply new settings')
    },
    async action(kind, name, input, signal) {
      const { merge, isSlow = false } = namedAction(kindOf(kind).computeActions, name)
      const question = ({ host }: HostAgent) => host.action(kind, name, input, signal)
      return merge((await fanOut.ask(question, isSlow ? longTimeouts : undefined)).map(({ value }) => value))
    },
  }
}

/** The mean of the computes whose load is known. */
export async function loadOf(members: FleetMembers): Promise<Load> {
  const loads = (await members.all()).flatMap(({ load }) => (load === undefined ? [] : [load]))
  const mean = (figure: (load: Load) => number): number =>
    loads.length === 0 ? 0 : loads.reduce((sum, load) => sum + figure(load), 0) / loads.length
  return {
    cpu_usage_percent: mean((load) => load.cpu_usage_percent),
    memory_usage_percent: mean((load) => load.memory_usage_percent),
  }
}
