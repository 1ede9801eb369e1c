import { once } from 'node:events'
import { type AddressInfo, createServer, isIPv4 } from 'node:net'
import { isForbidden } from '../../../../../src/compute/remote/address.ts'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { ApplianceRun } from '../driver.ts'
import type { VirtualBoxVm } from './machine.ts'
import type { Machines } from './machines.ts'

const loopback = '127.0.0.1'
/** Name of the NAT rule that forwards a port of the host to the service in the VM. */
const ruleName = 'Patchbay'

/** Operations for the appliance VM only. */
export class Appliances {
  readonly #machines: Machines
  /** Host ports by VM and guest port. Ports of an earlier service are not reused, because another program may have them now. */
  readonly #forwarded = new Map<string, number>()

  constructor(machines: Machines) {
    this.#machines = machines
  }

  /** Starts the VM. VirtualBox stores a new size in the settings of the VM. */
  async start(
    { uuid, name, state, memory, processors }: VirtualBoxVm,
    { size, headless }: ApplianceRun,
  ): Promise<void> {
    if (state !== 'stopped' && state !== 'saved') throw conflict(`The VM ${JSON.stringify(name)} is already running`)
    const options: string[] = []
    if (size !== undefined && size.ram !== memory) options.push('--memory', String(size.ram))
    if (size !== undefined && size.vcpus !== processors) options.push('--cpus', String(size.vcpus))
    // A saved VM keeps its size.
    if (state === 'stopped') await this.#machines.modify(uuid, options)
    await this.#machines.run('startvm', uuid, ...(headless ? ['--type', 'headless'] : []))
  }

  /** The addresses of host-only and bridged adapters, then a forwarded port of the host if there is a NAT adapter. */
  async reach(machine: VirtualBoxVm, port: number): Promise<{ host: string; port: number }[]> {
    const reachable = machine.adapters.filter(({ attachment }) => attachment === 'hostonly' || attachment === 'bridged')
    const nat = machine.adapters.find(({ attachment }) => attachment === 'nat')
    if (reachable.length === 0 && nat === undefined) {
      const remedy = 'give it a host-only and a NAT adapter, or set address'
      throw conflict(`The VM ${JSON.stringify(machine.name)} cannot be reached from this host: ${remedy}`)
    }
    const known =
      reachable.length === 0 ? [] : await this.#addresses(machine.uuid, new Set(reachable.map(({ mac }) => mac)))
    const addresses = known.map((host) => ({ host, port }))
    if (nat === undefined) return addresses
    return [...addresses, { host: loopback, port: await this.#forward(machine, nat.number, port) }]
  }

  /** The addresses of adapters, as the Guest Additions report them. */
  async #addresses(uuid: string, macs: ReadonlySet<string | undefined>): Promise<string[]> {
    const text = await this.#machines.run('guestproperty', 'enumerate', uuid)
    const found = new Map<string, { mac?: string; address?: string }>()
    // `Name: {name}, value: {value}, timestamp: ...`, and from VirtualBox 7 `{name} = '{value}' @ ...`.
    const line = /\/VirtualBox\/GuestInfo\/Net\/(\d+)\/(MAC|V4\/IP)(?:, value: |\s*=\s*')([\w.:]+)/g
    for (const [, number = '', what, value = ''] of text.matchAll(line))
      found.set(number, { ...found.get(number), [what === 'MAC' ? 'mac' : 'address']: value })
    return [...found.values()].flatMap(({ mac, address = '' }) =>
      macs.has(mac) && isIPv4(address) && address !== '0.0.0.0' && !isForbidden(address) ? [address] : [],
    )
  }

  /** Forwards a port of the host. The rule of an earlier service is replaced. */
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
