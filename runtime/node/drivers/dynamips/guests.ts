import { join } from 'node:path'
import type { PortRef } from '../../../../src/host-agent.ts'
import { aborted } from '../../../../src/lib/async/abort.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import {
  firstPortOfWic,
  isFixed,
  portsOfRouter,
  slotFields,
  wicFields,
} from '../../../../src/model/kinds/dynamips-hardware.ts'
import type {
  GuestControl,
  GuestProcess,
  GuestState,
  KindListener,
  PortWire,
  StopReason,
} from '../../engine/nodes/kind.ts'
import { hasCarrier } from '../../engine/nodes/record.ts'
import { configsOfFiles, parseConfigs, pushValues, type StoredConfigs, saveConfigs } from './configs.ts'
import { errorsName, hasNvram, imageLink, lastOutput } from './files.ts'
import type { Hypervisor } from './hypervisor.ts'
import { type DynamipsKindNode, type DynamipsProperties, hardwareOf, macOf } from './properties.ts'
import { reach } from './ready.ts'
import { type DynamipsReply, HypervisorError } from './replies.ts'
import type { DynamipsTimeouts } from './timeouts.ts'

/** The name of the router inside dynamips; each dynamips runs one router. */
export const routerName = 'router'
/** A router has one processor. */
const cpu = 0
const noIdlePc = '0x0'
/** The name of the NIO of a port inside dynamips. It is there while the router runs, and bound to the port while that is linked. */
const nioName = ({ adapter, port }: PortRef): string => `nio_${adapter}_${port}`

/** A router under measurement, with a separate connection. */
export type Lent = { readonly process: GuestProcess; readonly client: Hypervisor }

type Running = { readonly process: GuestProcess; client: Hypervisor | undefined; isMeasured: boolean }

/** Controls running routers by the control connections of their dynamips. */
export class DynamipsGuests implements GuestControl<DynamipsProperties> {
  readonly #timeouts: DynamipsTimeouts
  readonly #listener: KindListener
  readonly #onEnded: (node: DynamipsKindNode) => void
  readonly #running = new Map<string, Running>()
  readonly #wires = new WeakMap<DynamipsKindNode, ReadonlyMap<string, PortWire>>()

  constructor(timeouts: DynamipsTimeouts, listener: KindListener, onEnded: (node: DynamipsKindNode) => void) {
    this.#timeouts = timeouts
    this.#listener = listener
    this.#onEnded = onEnded
  }

  /** The UDP ports for the next start. */
  wired(node: DynamipsKindNode, wires: ReadonlyMap<string, PortWire>): void {
    this.#wires.set(node, wires)
  }

  async begin(node: DynamipsKindNode, process: GuestProcess): Promise<void> {
    const { ended, skipGracePeriod } = process
    try {
      await this.#connect(node, process, this.#timeouts.begin, AbortSignal.any([ended, skipGracePeriod]))
      await this.#create(node)
    } catch (error) {
      if (skipGracePeriod.aborted) throw conflict('The router is being stopped', { cause: error })
      // The log is complete after the exit.
      if (isClosed(error)) await withTimeout(aborted(ended), this.#timeouts.command, () => {})
      throw await explained(error, node)
    }
  }

  async adopt(node: DynamipsKindNode, process: GuestProcess): Promise<GuestState> {
    // The measurement that started it ended with the earlier service.
    if (node.record.properties.is_measured) return { status: 'stopped', reason: null }
    await this.#connect(node, process, this.#timeouts.adopt, process.ended).catch(refused)
    // The earlier service was killed during the start.
    if ((await this.#status(node)) === 'inactive') return { status: 'stopped', reason: null }
    // The earlier service may have been killed during a measurement, which changes the idle PC.
    await this.setIdlePc(node)
    for (const port of portsOfRouter(hardwareOf(node))) await this.setCarrier(node, port, hasCarrier(node.record, port))
    return this.state(node)
  }

  async endGuest(node: DynamipsKindNode, { ended }: GuestProcess, how: StopReason): Promise<void> {
    if (how === 'remove' || ended.aborted || node.record.properties.is_measured) return
    await this.saveConfigs(node)
    await this.#do(node, 'vm stop', [], this.#timeouts.stop)
  }

  release(node: DynamipsKindNode): void {
    this.#running.get(node.key)?.client?.close()
    this.#running.delete(node.key)
    this.#onEnded(node)
  }

  async state(node: DynamipsKindNode): Promise<GuestState> {
    const statuses = { running: 'started', suspended: 'suspended', inactive: 'stopped' } as const
    return { status: statuses[await this.#status(node)], reason: null }
  }

  async suspend(node: DynamipsKindNode): Promise<void> {
    this.requireUnmeasured(node)
    await this.#do(node, 'vm suspend')
  }

  resume = (node: DynamipsKindNode): Promise<void> => this.#do(node, 'vm resume')

  async reset(node: DynamipsKindNode): Promise<void> {
    this.requireUnmeasured(node)
    await this.#do(node, 'vm stop')
    await this.#do(node, 'vm start')
  }

  async setCarrier(node: DynamipsKindNode, port: PortRef, isUp: boolean): Promise<void> {
    const { adapter, port: number } = port
    try {
      const { lines } = await this.#run(node, 'vm slot_nio_bindings', [adapter])
      const isBound = lines.some((line) => line.endsWith(`: ${nioName(port)}`))
      if (isBound === isUp) return
      if (isUp) await this.#run(node, 'vm slot_add_nio_binding', [adapter, number, nioName(port)])
      await this.#run(node, isUp ? 'vm slot_enable_nio' : 'vm slot_disable_nio', [adapter, number])
      if (!isUp) await this.#run(node, 'vm slot_remove_nio_binding', [adapter, number])
    } catch (error) {
      if (isClosed(error) || !this.#running.has(node.key)) return
      const cable = isUp ? 'connected' : 'disconnected'
      const message = `${node.record.name}: port ${adapter}/${number} could not be ${cable}: ${(error as Error).message}`
      this.#listener.happened(node.key, { type: 'log.warning', message })
    }
  }

  /** The configurations in the NVRAM of a running router; undefined when there is none. 409. */
  configs = (node: DynamipsKindNode): Promise<StoredConfigs | undefined> => this.#configs(node).catch(refused)

  /** Puts configurations into the NVRAM of a running router, for its next boot; an empty or absent one is kept. 409. */
  async pushConfigs(node: DynamipsKindNode, texts: readonly (string | null | undefined)[]): Promise<void> {
    const values = pushValues(texts)
    if (values !== undefined) await this.#do(node, 'vm push_config', values)
  }

  /** Writes what the router stored into its files. Never throws: the NVRAM has it all the same. */
  async saveConfigs(node: DynamipsKindNode): Promise<void> {
    try {
      const stored = await this.#configs(node)
      if (stored !== undefined) await saveConfigs(node.directory, stored)
    } catch (error) {
      const message = `${node.record.name}: its configurations could not be read: ${(error as Error).message}`
      this.#listener.happened(node.key, { type: 'log.warning', message })
    }
  }

  async #configs(node: DynamipsKindNode): Promise<StoredConfigs | undefined> {
    const reply = await this.#run(node, 'vm extract_config').catch((error: unknown) => {
      if (error instanceof HypervisorError && error.code === 'refused') return undefined
      throw error
    })
    return reply && parseConfigs(reply)
  }

  async withQuiescedGuest<T>(node: DynamipsKindNode, run: () => Promise<T>): Promise<T> {
    this.requireUnmeasured(node)
    const isRunning = (await this.#status(node)) === 'running'
    if (isRunning) await this.#do(node, 'vm suspend')
    try {
      return await run()
    } finally {
      if (isRunning) await this.#do(node, 'vm resume').catch((error: Error) => this.#notResumed(node, error))
    }
  }

  /** The work is done all the same. The new status lets the client resume the router. */
  #notResumed({ key, record }: DynamipsKindNode, { message }: Error): void {
    this.#listener.happened(key, { type: 'log.warning', message: `${record.name} could not be resumed: ${message}` })
    this.#listener.changed(key)
  }

  /** Sets the idle PC of a running router to that of its settings, or to none; 409. */
  async setIdlePc(node: DynamipsKindNode): Promise<void> {
    await this.#do(node, 'vm set_idle_pc_online', [cpu, node.record.properties.idlepc ?? noIdlePc])
  }

  /** 409 during a measurement, because other commands would change its result. */
  requireUnmeasured({ key }: DynamipsKindNode): void {
    if (this.#running.get(key)?.isMeasured === true)
      throw conflict(
        'The idle-PC of the router is being measured: wait until the measurement is done, or stop the router',
      )
  }

  /** Begins the measurement of a running router; 409. */
  async lend(node: DynamipsKindNode): Promise<Lent> {
    this.requireUnmeasured(node)
    const running = this.#runningOf(node)
    const { process } = running
    const signal = AbortSignal.any([process.ended, process.skipGracePeriod])
    const client = await this.#connection(node, this.#timeouts.adopt, signal).catch(refused)
    running.isMeasured = true
    return { process, client }
  }

  /** Ends the measurement. Whether the router still runs. */
  takeBack({ key }: DynamipsKindNode, { process }: Lent): boolean {
    const running = this.#running.get(key)
    if (running?.process !== process) return false
    running.isMeasured = false
    return !process.ended.aborted
  }

  async #connect(node: DynamipsKindNode, process: GuestProcess, ms: number, signal: AbortSignal): Promise<void> {
    this.#running.get(node.key)?.client?.close()
    const running: Running = { process, client: undefined, isMeasured: false }
    this.#running.set(node.key, running)
    running.client = await this.#connection(node, ms, signal)
  }

  #connection(node: DynamipsKindNode, ms: number, signal: AbortSignal): Promise<Hypervisor> {
    return reach({ directory: node.directory, port: node.record.properties.control_port, ms, signal })
  }

  /** Creates and starts the router in a new dynamips. */
  async #create(node: DynamipsKindNode): Promise<void> {
    const { platform, ram, idlepc, npe, nvram, iomem, disk0, disk1, console_port } = node.record.properties
    const hardware = hardwareOf(node)
    const run = (command: string, ...values: readonly (string | number)[]) => this.#run(node, command, values)
    await run('vm create', 1, platform)
    if (hardware.chassis !== '') await run(`${platform} set_chassis`, hardware.chassis)
    if (platform === 'c7200') await run('c7200 set_npe', npe)
    await run(`${platform} set_mac_addr`, macOf(node))
    await run('vm set_ram', ram)
    // Anonymous memory, because a mapped file would fill the disk.
    await run('vm set_ram_mmap', 0)
    if (nvram > 0) await run('vm set_nvram', nvram)
    if (iomem > 0 && platform !== 'c7200') await run(`${platform} set_iomem`, iomem)
    for (const [name, size] of Object.entries({ disk0, disk1 })) if (size > 0) await run(`vm set_${name}`, size)
    await run('vm set_ios', imageLink)
    // A card that belongs to the chassis is there. The console of a c7200 is on the card of slot 0.
    for (const [slot, field] of slotFields.entries())
      if (hardware[field] !== '' && !(slot === 0 && isFixed(hardware)))
        await run('vm slot_add_binding', slot, 0, hardware[field])
    for (const [index, field] of wicFields.entries())
      if (hardware[field] !== '') await run('vm slot_add_binding', 0, firstPortOfWic(index), hardware[field])
    await this.#connectPorts(node)
    if (console_port > 0) await run('vm set_con_tcp_port', console_port)
    await run('vm set_idle_pc', idlepc ?? noIdlePc)
    await this.#fillNvram(node)
    await run('vm start')
  }

  /** Makes the NIOs of all ports, and binds those of linked ports. */
  async #connectPorts(node: DynamipsKindNode): Promise<void> {
    const { client } = this.#runningOf(node)
    const wires = this.#wires.get(node)
    for (const port of portsOfRouter(hardwareOf(node))) {
      const wire = wires?.get(`${port.adapter}/${port.port}`)
      if (wire === undefined || client === undefined) continue
      const { guest_port, switch_port } = wire
      const values = [nioName(port), guest_port, '127.0.0.1', switch_port]
      await client.run('nio create_udp', values, { ms: this.#timeouts.command })
      if (hasCarrier(node.record, port))
        await this.#run(node, 'vm slot_add_nio_binding', [port.adapter, port.port, nioName(port)])
    }
  }

  /** Puts new configurations into the NVRAM, and those of the files into a new one. */
  async #fillNvram(node: DynamipsKindNode): Promise<void> {
    const { record, directory } = node
    if (!record.properties.is_config_new && hasNvram(directory, record.properties.platform)) return
    const values = pushValues(await configsOfFiles(directory))
    if (values !== undefined) await this.#run(node, 'vm push_config', values)
    record.properties = { ...record.properties, is_config_new: false }
  }

  async #status(node: DynamipsKindNode): Promise<'inactive' | 'running' | 'suspended'> {
    const { lines, text } = await this.#run(node, 'vm get_status').catch((error: unknown) =>
      isUnknown(error) ? { lines: [], text: '0' } : refused(error),
    )
    // 0 is inactive, 1 is shutting down.
    const status = ({ 2: 'running', 3: 'suspended' } as const)[Number(lines[0] ?? text)]
    return status ?? 'inactive'
  }

  /** Runs a command on the router; 409 when it fails. */
  async #do(
    node: DynamipsKindNode,
    command: string,
    values: readonly (string | number)[] = [],
    ms?: number,
  ): Promise<void> {
    await this.#run(node, command, values, ms).catch(refused)
  }

  async #run(
    node: DynamipsKindNode,
    command: string,
    values: readonly (string | number)[] = [],
    ms = this.#timeouts.command,
  ): Promise<DynamipsReply> {
    const running = this.#runningOf(node)
    const { ended } = running.process
    if (running.client?.isOpen !== true) running.client = await this.#connection(node, this.#timeouts.adopt, ended)
    return running.client.run(command, [routerName, ...values], { ms, signal: ended })
  }

  #runningOf({ key }: DynamipsKindNode): Running {
    const running = this.#running.get(key)
    if (running === undefined) throw conflict('The router is not running')
    return running
  }
}

/** Whether dynamips closed the connection, because it is about to end. */
export const isClosed = (error: unknown) => error instanceof HypervisorError && error.code === 'closed'

const unknownObject = 208
const isUnknown = (error: unknown) => error instanceof HypervisorError && error.reply === unknownObject

/** Rethrows a failed command as 409. */
export function refused(error: unknown): never {
  throw error instanceof HypervisorError ? conflict(error.message, { cause: error }) : error
}

/** The reason of a failed start, with the last errors of dynamips. */
async function explained(error: unknown, { directory }: DynamipsKindNode): Promise<unknown> {
  if (!(error instanceof HypervisorError)) return error
  const output = await lastOutput(join(directory, errorsName), directory)
  return conflict(output === '' ? error.message : `${error.message}: ${output}`, { cause: error })
}
