import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import { hangMs } from '../../../support/limits.ts'
import { TestService } from '../../../support/service.ts'
import { Terminal } from '../../../support/terminal.ts'
import { LabFeed } from './lab-feed.ts'

export type Status = MachineEmulatorNode['status']
export type Action = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** Settings of a service for machines: /dev/kvm of a virtual host may stall firmware. */
export const machineService = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  'machine_emulator.acceleration': 'tcg',
  ...more,
})

/** One service for the tests of a file. */
export function sharedService(more: Record<string, unknown> = {}): () => TestService {
  let service: TestService | undefined
  beforeAll(async () => {
    service = await TestService.startForAll(machineService(more))
  })
  afterAll(() => service?.close())
  return () => {
    if (service === undefined) throw new Error('the service is started before the tests')
    return service
  }
}

/** A machine that costs nothing but a BIOS, which has nothing to boot. */
export const smallest = {
  platform: 'x86_64',
  ram: 16,
  adapters: 0,
  console_type: 'none',
  options: '-vga none',
  // Others use the host of a test, too.
  process_priority: 'normal',
} as const

/** A machine that boots the program from `hda`; its serial port is its console. */
export const booting = (image: string) => ({ ...smallest, console_type: 'telnet', hda_disk_image: image }) as const

/** A project of machines. */
export class MachineLab {
  readonly service: TestService
  readonly id: string

  private constructor(service: TestService, id: string) {
    this.service = service
    this.id = id
  }

  static async create(service: TestService, id: string = randomUUID()): Promise<MachineLab> {
    await service.call('POST', '/v2/compute/projects', { name: 'lab', project_id: id })
    return new MachineLab(service, id)
  }

  get path(): string {
    return `/v2/compute/projects/${this.id}`
  }

  /** Asks for a machine; what it is answered. */
  ask(settings: Record<string, unknown> = {}): Promise<Answer> {
    return answer(this.service, 'POST', `${this.path}/machine-emulator/nodes`, { name: 'R1', ...smallest, ...settings })
  }

  async machine(settings: Record<string, unknown> = {}): Promise<Machine> {
    const { status, body } = await this.ask(settings)
    if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
    return new Machine(this, String(body.node_id))
  }

  async list(): Promise<Machine[]> {
    const nodes = await this.service.call<{ node_id: string }[]>('GET', `${this.path}/machine-emulator/nodes`)
    return nodes.map(({ node_id }) => new Machine(this, node_id))
  }

  /** Where an image of that name is. */
  imagePath(name: string): string {
    return join(this.service.data, 'images/machine-emulator', name)
  }

  /** A raw image of 16 MB that begins with these bytes; its name. */
  async image(name: string, head: Buffer = Buffer.alloc(0)): Promise<string> {
    await mkdir(join(this.service.data, 'images/machine-emulator'), { recursive: true })
    await writeImage(this.imagePath(name), head)
    return name
  }

  async reserve(): Promise<number> {
    return (await this.service.call<{ udp_port: number }>('POST', `${this.path}/ports/udp`, {})).udp_port
  }

  async feed(): Promise<LabFeed> {
    return LabFeed.open(this.service, this.path)
  }
}

/** A node of the lab, and the emulator of it. */
export class Machine {
  readonly lab: MachineLab
  readonly id: string

  constructor(lab: MachineLab, id: string) {
    this.lab = lab
    this.id = id
  }

  get path(): string {
    return `${this.lab.path}/machine-emulator/nodes/${this.id}`
  }

  /** The same node of another service, such as the one after a restart. */
  view(): Promise<MachineEmulatorNode> {
    return this.lab.service.call<MachineEmulatorNode>('GET', this.path)
  }

  async status(): Promise<Status> {
    return (await this.view()).status
  }

  do(action: Action): Promise<Answer> {
    return answer(this.lab.service, 'POST', `${this.path}/${action}`)
  }

  update(changes: Record<string, unknown>): Promise<Answer> {
    return answer(this.lab.service, 'PUT', this.path, changes)
  }

  remove(): Promise<Answer> {
    return answer(this.lab.service, 'DELETE', this.path)
  }

  duplicate(destination: Machine): Promise<Answer> {
    return answer(this.lab.service, 'POST', `${this.path}/duplicate`, { destination_node_id: destination.id })
  }

  nio(method: 'POST' | 'PUT' | 'DELETE', adapter: number, nio?: Record<string, unknown>): Promise<Answer> {
    return answer(this.lab.service, method, `${this.path}/adapters/${adapter}/ports/0/nio`, nio)
  }

  /** Does what must succeed. */
  async must(...actions: readonly Action[]): Promise<void> {
    for (const action of actions) {
      const { status, body } = await this.do(action)
      if (status >= 300) throw new Error(`${action}: ${status} ${JSON.stringify(body)}`)
    }
  }

  /** Brings it from stopped into a state. */
  async bring(state: Status): Promise<void> {
    if (state !== 'stopped') await this.must('start')
    if (state === 'suspended') await this.must('suspend')
  }

  /** Resolves when it is shown in the state. */
  async becomes(state: Status, timeout = hangMs): Promise<void> {
    await expect.poll(() => this.status(), { timeout, interval: 20 }).toBe(state)
  }

  /** The pid of its emulator; undefined when there is none. */
  get pid(): number | undefined {
    return pidsOf(this.id)[0]
  }

  signal(signal: NodeJS.Signals): void {
    const { pid } = this
    if (pid === undefined) throw new Error('there is no emulator')
    process.kill(pid, signal)
  }

  /** A terminal on its console, which has shown that its program runs. */
  async boot(): Promise<Terminal> {
    await this.must('start')
    return this.terminal('>')
  }

  /** A terminal on its console that has shown the text. */
  async terminal(text: string): Promise<Terminal> {
    const terminal = await Terminal.connect((await this.view()).console ?? 0)
    await terminal.expect(text)
    return terminal
  }
}

async function answer(service: TestService, method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await service.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) }
}

/** Emulators that were given the id of the node. */
export function pidsOf(nodeId: string): number[] {
  const isIt = (pid: string) => {
    try {
      const [command = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
      return /qemu/.test(command) && args.includes(nodeId)
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isIt(name))
    .map(Number)
}

/** The files that a process has open. */
export function openFiles(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${descriptor}`)]
    } catch {
      return []
    }
  })
}

/** A raw image of 16 MB that begins with these bytes. */
export async function writeImage(path: string, head: Buffer): Promise<void> {
  await writeFile(path, head)
  const file = await open(path, 'r+')
  await file.truncate(16 << 20)
  await file.close()
}

export const qemuImg = (...args: readonly string[]): string => execFileSync('qemu-img', args, { encoding: 'utf8' })
