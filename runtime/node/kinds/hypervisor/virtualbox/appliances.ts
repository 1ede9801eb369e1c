import { once } from 'node:events'
import { type AddressInfo, createServer, isIPv4 } from 'node:net'
import { isForbidden } from '../../../../../src/client/address.ts'
import { conflict } from '../../../../../src/errors/api-error.ts'
import type { ApplianceRun } from '../driver.ts'
import type { VirtualBoxVm } from './machine.ts'
import type { Machines } from './machines.ts'

const loopback = '127.0.0.1'
/** Of the rule by which a port of the host leads to the service. */
const ruleName = 'Patchbay'

/** What only the appliance VM needs of VirtualBox. */
export class Appliances {
  readonly #machines: Machines
  /** Ports of the host by machine and guest port; those that a service before this one chose may be somebody else's by now. */
  readonly #forwarded = new Map<string, number>()

  constructor(machines: Machines) {
    this.#machines = machines
  }

  /** Its size stays in its settings: VirtualBox knows no other. */
  async start(
    { uuid, name, state, memory, processors }: VirtualBoxVm,
    { size, headless }: ApplianceRun,
  ): Promise<void> {
    if (state !== 'stopped' && state !== 'saved') throw conflict(`The VM ${JSON.stringify(name)} runs already`)
    const options: string[] = []
    if (size !== undefined && size.ram !== memory) options.push('--memory', String(size.ram))
    if (size !== undefined && size.vcpus !== processors) options.push('--cpus', String(size.vcpus))
    // One that is saved is as large as it was.
    if (state === 'stopped') await this.#machines.modify(uuid, options)
    await this.#machines.run('startvm', uuid, ...(headless ? ['--type', 'headless'] : []))
  }

  /** What the guest says of its adapters to networks that the host is in, then a port of the host that leads to its NAT adapter. */
  async reach(machine: VirtualBoxVm, port: number): Promise<{ host: string; port: number }[]> {
    const reachable = machine.adapters.filter(({ attachment }) => attachment === 'hostonly' || attachment === 'bridged')
    const nat = machine.adapters.find(({ attachment }) => attachment === 'nat')
    if (reachable.length === 0 && nat === undefined) {
      const remedy = 'give it a host-only and a NAT adapter, or set address'
      throw conflict(`The VM ${JSON.stringify(machine.name)} cannot be reached from this host: ${remedy}`)
    }
    const told = reachable.length === 0 ? [] : await this.#told(machine.uuid, new Set(reachable.map(({ mac }) => mac)))
    const places = told.map((host) => ({ host, port }))
    if (nat === undefined) return places
    return [...places, { host: loopback, port: await this.#forward(machine, nat.number, port) }]
  }

  /** Addresses of these adapters, as the Guest Additions tell them. */
  async #told(uuid: string, macs: ReadonlySet<string | undefined>): Promise<string[]> {
    const text = await this.#machines.run('guestproperty', 'enumerate', uuid)
    const found = new Map<string, { mac?: string; address?: string }>()
    // `Name: {name}, value: {value}, timestamp: ...`, and from VirtualBox 7 `{name} = '{value}' @ ...`.
    const line = /\/VirtualBox\/GuestInfo\/Net\/(\d+)\/(MAC|V4\/IP)(?:, value: |\s*=\s*')([\w.:]+)/g
    for (const [, number = '', what, value = ''] of text.matchAll(line)) {
      found.set(number, { ...found.get(number), [what === 'MAC' ? 'mac' : 'address']: value })
    }
    return [...found.values()].flatMap(({ mac, address = '' }) =>
      macs.has(mac) && isIPv4(address) && address !== '0.0.0.0' && !isForbidden(address) ? [address] : [],
    )
  }

  /** The port of this host; the rule is made anew once. */
  async #forward({ uuid, forwardings }: VirtualBoxVm, adapter: number, port: number): Promise<number> {
    const key = `${uuid}/${port}`
    const known = this.#forwarded.get(key)
    const rule = forwardings.find((it) => it.startsWith(`${ruleName},`))
    if (known !== undefined && rule === `${ruleName},tcp,${loopback},${known},,${port}`) return known
    const control = (...words: string[]) => this.#machines.run('controlvm', uuid, `natpf${adapter}`, ...words)
    if (rule !== undefined) await control('delete', ruleName)
    const free = await freePort()
    await control(`${ruleName},tcp,${loopback},${free},,${port}`)
    this.#forwarded.set(key, free)
    return free
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, loopback)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
