import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { newNic, saveSettings } from './machine.ts'
import { serve } from './server.ts'
import { change, type Fault, type Logged, type MachineState, type Nic, read, type State, write } from './state.ts'

export type { MachineState, Nic } from './state.ts'

export interface MachineWish extends Partial<Omit<MachineState, 'nics'>> {
  /** By the number of the adapter, from 1; the others are disabled. */
  readonly nics?: Readonly<Record<number, Partial<Nic>>>
}

/** What a stand-in of VirtualBox knows, in a directory. */
export class World {
  readonly directory: string
  #seen = 0
  #server: Server | undefined

  /** Of the programs in that directory (see `build.ts`). */
  constructor(directory: string, programs: string) {
    this.directory = directory
    mkdirSync(directory, { recursive: true })
    write(directory, {
      programs,
      ...{ api: '7_0', ich9Adapters: 36, screenPack: '', speaksGerman: false, unlockMs: 0 },
      ...{ machines: [], media: [], faults: [] },
    })
  }

  get state(): State {
    return read(this.directory)
  }

  alter(how: (state: State) => void): void {
    change(this.directory, how)
  }

  /** A machine of the user's, with one disk. */
  add(name: string, { nics = {}, ...wish }: MachineWish = {}): MachineState {
    const uuid = wish.uuid ?? randomUUID()
    const folder = join(this.directory, 'machines', name.replaceAll('/', '_'))
    mkdirSync(folder, { recursive: true })
    const disk = { uuid: randomUUID(), file: join(folder, 'disk.vdi'), parent: '' }
    writeFileSync(disk.file, 'the disk of the user\n')
    const machine: MachineState = {
      ...{
        uuid,
        name,
        file: join(folder, 'machine.vbox'),
        accessible: true,
        state: 'poweroff',
        memory: 512,
        processors: 1,
      },
      ...{ chipset: 'piix3', description: '', pid: 0, lockedUntil: 0, obeys: true },
      nics: Array.from({ length: wish.chipset === 'ich9' ? 36 : 8 }, (_, index) => ({
        ...newNic(),
        ...(nics[index + 1] !== undefined && { enabled: true, ...nics[index + 1] }),
      })),
      uart: { on: false, base: '0x03f8', irq: '4', mode: 'disconnected' },
      vrde: { on: false, ports: '3389', address: '' },
      controllers: ['SATA'],
      slots: [{ controller: 'SATA', port: 0, device: 0, medium: disk.uuid }],
      ...{ snapshots: [], extraData: {}, guestProperties: {} },
      ...wish,
    }
    this.alter((state) => {
      state.media.push(disk)
      state.machines.push(machine)
      saveSettings(state, machine)
    })
    return machine
  }

  machine(uuid: string): MachineState {
    const found = this.state.machines.find((each) => each.uuid === uuid)
    if (found === undefined) throw new Error(`there is no machine ${uuid}`)
    return found
  }

  fault(match: string, action: Fault['action'], how: Partial<Fault> = {}): void {
    this.alter((state) => void state.faults.push({ match, action, times: 1, ...how }))
  }

  /** The commands that have come since this was last asked, without the question what VirtualBox is. */
  commands(): string[] {
    const begun = this.log().filter(({ event }) => event === 'begin')
    const fresh = begun.slice(this.#seen).map(({ args }) => args.join(' '))
    this.#seen = begun.length
    return fresh.filter((line) => line !== 'list systemproperties')
  }

  log(): Logged[] {
    const text = readFileSync(join(this.directory, 'commands.log'), { encoding: 'utf8', flag: 'a+' })
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Logged)
  }

  /** Without it every command is a program of its own, which takes longer. */
  async serve(): Promise<void> {
    this.#server = await serve(this.directory)
  }

  /** Ends commands that hang. */
  killCommands(): void {
    const over = new Set(this.log().flatMap(({ event, pid }) => (event === 'end' ? [pid] : [])))
    for (const { pid } of this.log()) if (!over.has(pid)) kill(pid)
  }

  /** Ends what runs. */
  end(): void {
    this.killCommands()
    this.#server?.close()
    for (const { pid } of this.state.machines) kill(pid)
  }
}

/** Only what is a program of the stand-in: the number of one that has ended may be another's by now. */
function kill(pid: number): void {
  try {
    if (/VBoxManage|vm\.js|main\.js/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))) process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
