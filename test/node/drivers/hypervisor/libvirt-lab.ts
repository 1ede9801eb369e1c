import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { VmAdapter, VmPlan } from '../../../../runtime/node/drivers/hypervisor/driver.ts'
import { LibvirtDriver, type LibvirtOptions } from '../../../../runtime/node/drivers/hypervisor/libvirt/libvirt.ts'
import { TestLibvirt } from '../../../support/libvirt.ts'
import { freePorts } from '../../../support/ports.ts'
import { TcpClient } from '../../../support/tcp-client.ts'

/** A libvirt for the tests of a file together. */
export function sharedLibvirt(): () => TestLibvirt {
  let libvirt: TestLibvirt | undefined
  beforeAll(async () => {
    libvirt = await TestLibvirt.start()
    // It looks at every emulator once, which takes its time.
    await libvirt.virsh('capabilities')
  })
  afterAll(() => libvirt?.close())
  return () => {
    if (libvirt === undefined) throw new Error('libvirt was not started')
    return libvirt
  }
}

/** A driver that is closed when the test ends, and a VM for it. */
export class LibvirtLab {
  readonly libvirt: TestLibvirt
  readonly driver: LibvirtDriver
  readonly uuid = randomUUID()
  readonly name = `vm-${this.uuid.slice(0, 8)}`
  /** Where files of the user are. */
  readonly directory: string

  private constructor(libvirt: TestLibvirt, options: Partial<LibvirtOptions>) {
    this.libvirt = libvirt
    this.directory = join(libvirt.directory, this.name)
    this.driver = new LibvirtDriver({ uri: () => libvirt.uri, ...options })
    // Some guests keep a processor busy.
    onTestFinished(async () => {
      await this.driver.stop(this.uuid, 'power_off').catch(() => {})
      await this.driver.close()
    })
  }

  static async create(libvirt: TestLibvirt, options: Partial<LibvirtOptions> = {}): Promise<LibvirtLab> {
    const lab = new LibvirtLab(libvirt, options)
    await mkdir(lab.directory, { mode: 0o755 })
    return lab
  }

  /** The file of a disk that boots from this sector. */
  async disk(sector: Buffer): Promise<string> {
    const file = join(this.directory, 'disk.img')
    await writeFile(file, Buffer.concat([sector, Buffer.alloc(1 << 20)]))
    return file
  }

  /** The definition as its user has it, secrets included. */
  definition(): Promise<string> {
    return this.libvirt.virsh('dumpxml', '--inactive', '--security-info', this.name)
  }

  /** Resolves with its state when that is one of these, whoever changed it. */
  async becomes(state: string, uuid: string = this.uuid): Promise<void> {
    let unwatch = () => {}
    await new Promise<void>((resolve, reject) => {
      const look = () =>
        void this.driver.get(uuid).then(
          (vm) => vm?.state === state && resolve(),
          // It is told of again when libvirt is back.
          (error: { code?: string }) => error.code === undefined && reject(error),
        )
      unwatch = this.driver.watch((changed) => changed === uuid && look())
      look()
    }).finally(() => unwatch())
  }
}

/** A plan with ports that no other test has. */
export function planOf(wanted: PlanWanted = {}): VmPlan {
  const console = freePorts(1 + 2 * (wanted.adapters ?? 0))
  return planAt({ console, udp: console + 1 }, wanted)
}

/** A plan whose ports begin at certain ones. */
export function planAt(
  { console, udp }: { console: number; udp: number },
  { adapters = 0, at = 0, ...wanted }: PlanWanted = {},
): VmPlan {
  return {
    adapters: Array.from({ length: adapters }, (_, index) => adapterOf(udp + 2 * (at + index), index)),
    adapterType: 'e1000',
    useAnyAdapter: false,
    serialPort: console + at,
    headless: true,
    ...wanted,
  }
}

export interface PlanWanted extends Partial<Omit<VmPlan, 'adapters'>> {
  readonly adapters?: number
  readonly at?: number
}

const adapterOf = (port: number, index: number): VmAdapter => ({
  index,
  guestPort: port,
  switchPort: port + 1,
  carrier: true,
})

/** The console of a VM that is about to be started: it is there before the guest runs, so that nothing it says is lost. */
export async function consoleOf({ serialPort }: VmPlan): Promise<TcpClient> {
  for (;;) {
    const client = await TcpClient.connect(serialPort).catch(() => undefined)
    if (client !== undefined) return client
    await pause(5)
  }
}

/** What a guest that counts says next. Bytes are sent until it answers: it loses those that come before it waits for them. */
export async function countOf({ serialPort }: VmPlan): Promise<string> {
  const client = await TcpClient.connect(serialPort)
  const sending = setInterval(() => client.socket.write('x'), 200)
  client.socket.write('x')
  try {
    const received = await client.until((it) => /[a-z]/.test(it.toString()))
    return /[a-z]/.exec(received.toString())?.[0] ?? ''
  } finally {
    clearInterval(sending)
    client.socket.destroy()
  }
}

/** Further on in the same run. */
export const later = expect.stringMatching(/[b-z]/)
