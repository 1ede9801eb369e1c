import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { counting, countingFull } from '../node/drivers/qemu/boot-sectors.ts'
import { machineService, smallest, writeImage } from '../node/drivers/qemu/machine-lab.ts'
import { echoing } from '../stand-in/mips/programs.ts'
import { freshDirectory } from '../support/directory.ts'
import { dynamipsIn, niceDynamips } from '../support/dynamips.ts'
import { IouConsole } from '../support/iou.ts'
import { hangMs } from '../support/limits.ts'
import { requireProgram, requireRoot } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { Terminal } from '../support/terminal.ts'
import { describeWith } from '../support/test-with.ts'

const campus = '/v2/projects/campus'

/** A lab on a service whose machines count what is typed on their consoles, from `a` on. */
class CountingLab {
  readonly service: TestService
  readonly project: LabProject

  private constructor(service: TestService, project: LabProject) {
    this.service = service
    this.project = project
  }

  static async open(more: Record<string, unknown> = {}, prepare = (_: string) => {}): Promise<CountingLab> {
    const service = await TestService.start(machineService({ 'pc.engine': 'embedded', ...more }))
    await mkdir(join(service.data, 'images/machine-emulator'), { recursive: true })
    for (const [name, program] of Object.entries({ counting, own: counting, full: countingFull }))
      await writeImage(join(service.data, `images/machine-emulator/${name}.img`), program)
    prepare(join(service.data, 'projects'))
    // Without them it can serve the next test.
    onTestFinished(async () => {
      if (service.isRunning) await service.call('DELETE', campus)
      await rm(join(service.data, 'images/machine-emulator'), { recursive: true })
    })
    return new CountingLab(service, await service.call('POST', '/v2/projects', { name: 'Campus' }))
  }

  /** Creates a machine, and starts it. */
  async machine(name: string, properties: Record<string, unknown> = {}): Promise<LabNode> {
    const { console_type: _, ...all } = { ...smallest, hda_disk_image: 'counting.img', ...properties }
    const input = { name, node_type: 'machine-emulator', console_type: 'telnet', properties: all }
    const node: LabNode = await this.service.call('POST', `${campus}/nodes`, input)
    await this.service.call('POST', `${campus}/nodes/${name}/start`)
    const terminal = await Terminal.connect((await this.node(name)).console ?? 0)
    await terminal.expect('>')
    return node
  }

  node = (name: string): Promise<LabNode> => this.service.call('GET', `${campus}/nodes/${name}`)
  nodes = (): Promise<LabNode[]> => this.service.call('GET', `${campus}/nodes`)
  statuses = async () => Object.fromEntries((await this.nodes()).map(({ name, status }) => [name, status]))
  act = (name: string, action: string) => this.service.call('POST', `${campus}/nodes/${name}/${action}`)

  /** Types on a console; the machine answers with this letter. */
  async expectNext(name: string, letter: string): Promise<void> {
    const terminal = await Terminal.connect((await this.node(name)).console ?? 0)
    terminal.type('x')
    await terminal.expect(letter)
  }

  becomes = (name: string, status: string) =>
    expect.poll(async () => (await this.node(name)).status, { timeout: hangMs, interval: 20 }).toBe(status)

  keep = (name: string): Promise<LabSnapshot> => this.service.call('POST', `${campus}/snapshots`, { name })
  restore = ({ snapshot_id }: LabSnapshot) => this.service.call('POST', `${campus}/snapshots/${snapshot_id}/restore`)

  /** What a request for a snapshot is refused with. */
  async refusal(): Promise<readonly [number, string | null, string]> {
    const answer = await this.service.fetch(`${campus}/snapshots`, {
      method: 'POST',
      body: JSON.stringify({ name: 'refused' }),
    })
    return [
      answer.status,
      answer.headers.get('x-patchbay-error'),
      ((await answer.json()) as { message: string }).message,
    ]
  }

  get directory(): string {
    return join(this.service.data, 'projects', this.project.project_id)
  }

  /** The names of the directories of snapshots. */
  kept = (): string[] => readdirSync(join(this.directory, '.patchbay/snapshots'))
  /** Where the first machine of a snapshot has its memory. */
  memoryOf(name: string): string {
    const machines = join(this.directory, '.patchbay/snapshots', name, 'project-files/machine-emulator')
    return join(machines, readdirSync(machines)[0] ?? '')
  }
}

describeWith(requireProgram('qemu-system-x86_64'))('a snapshot of a project that runs', () => {
  it('has the memory of its machines, which keep running, and continue from it after a restore', async () => {
    const lab = await CountingLab.open()
    const made = [(await lab.machine('R1')).node_id, (await lab.machine('R2')).node_id]
    await lab.service.call('POST', `${campus}/nodes`, { name: 'PC1', node_type: 'pc' })
    await lab.service.call('POST', `${campus}/nodes`, { name: 'SW1', node_type: 'switch' })
    await lab.act('PC1', 'start')
    await lab.expectNext('R1', 'a')
    await lab.expectNext('R2', 'a')
    await lab.expectNext('R2', 'b')
    const kept = await lab.keep('running')
    expect(kept).toMatchObject({ running: 3 })
    await lab.expectNext('R1', 'b')
    await lab.expectNext('R2', 'c')
    const again = await lab.keep('later')
    await lab.act('R2', 'stop')
    await lab.service.call('DELETE', `${campus}/nodes/R1`)
    await lab.restore(kept)
    expect(await lab.statuses()).toEqual({ R1: 'started', R2: 'started', PC1: 'started', SW1: 'started' })
    expect((await lab.nodes()).map(({ node_id }) => node_id)).toEqual(expect.arrayContaining(made))
    await lab.expectNext('R1', 'b')
    await lab.expectNext('R2', 'c')
    await lab.restore(again)
    await lab.expectNext('R1', 'c')
    await lab.expectNext('R2', 'd')
    // What they were restored to is gone when they are started anew.
    await lab.act('R1', 'stop')
    await lab.act('R1', 'start')
    await lab.expectNext('R1', 'a')
  })

  it('keeps a suspended machine suspended, in the snapshot and in the project', async () => {
    const lab = await CountingLab.open()
    await lab.machine('R1')
    await lab.expectNext('R1', 'a')
    await lab.act('R1', 'suspend')
    const kept = await lab.keep('one')
    await lab.keep('two')
    expect(await lab.statuses()).toEqual({ R1: 'suspended' })
    await lab.act('R1', 'start')
    await lab.expectNext('R1', 'b')
    await lab.restore(kept)
    await lab.becomes('R1', 'suspended')
    await lab.act('R1', 'start')
    await lab.expectNext('R1', 'b')
  })

  it('is restored by a later service, and for a closed project when that is opened', async () => {
    const lab = await CountingLab.open()
    await lab.machine('R1')
    await lab.expectNext('R1', 'a')
    const kept = await lab.keep('one')
    await lab.service.kill('SIGKILL')
    await lab.service.restart()
    await lab.service.call('POST', `${campus}/close`)
    await lab.restore(kept)
    await lab.service.call('POST', `${campus}/open`)
    expect(await lab.statuses()).toEqual({ R1: 'started' })
    await lab.expectNext('R1', 'b')
  })

  it('is refused, with their names, when machines cannot be in a snapshot, and nothing changes', async () => {
    const lab = await CountingLab.open()
    await lab.machine('R1')
    await lab.machine('R2', { hda_disk_image: 'own.img', linked_clone: false })
    await lab.machine('R3', {
      hda_disk_image: 'counting.img',
      hdb_disk_image: 'counting.img',
      hdb_disk_interface: 'nvme',
    })
    const [status, code, message] = await lab.refusal()
    expect([status, code]).toEqual([409, 'node-running'])
    expect(message).toMatch(/stop them first: R2 \(linked_clone is off: hda is an image\), R3 \(.*nvme\)$/)
    expect(await lab.statuses()).toEqual({ R1: 'started', R2: 'started', R3: 'started' })
    await lab.act('R2', 'stop')
    await lab.act('R3', 'stop')
    await lab.keep('one')
    await lab.expectNext('R1', 'a')
  })

  it('whose memory no longer fits is reported at a start, and a stop removes the memory', async () => {
    const lab = await CountingLab.open()
    const { node_id } = await lab.machine('R1')
    await lab.expectNext('R1', 'a')
    const kept = await lab.keep('one')
    await lab.service.call('POST', `${campus}/close`)
    await lab.restore(kept)
    await writeFile(join(lab.directory, 'project-files/machine-emulator', node_id, 'memory.started'), 'of another kind')
    await lab.service.call('POST', `${campus}/open`)
    expect(await lab.node('R1')).toMatchObject({
      status: 'stopped',
      status_reason: expect.stringContaining('stop the node to start without it'),
    })
    await lab.act('R1', 'stop')
    await lab.act('R1', 'start')
    await lab.expectNext('R1', 'a')
  })

  it('is not read through a symbolic link', async () => {
    const lab = await CountingLab.open()
    const { node_id } = await lab.machine('R1')
    await lab.act('R1', 'stop')
    const memory = join(lab.directory, 'project-files/machine-emulator', node_id, 'memory.started')
    await symlink('/etc/hostname', memory)
    const refused = await lab.service.fetch(`${campus}/nodes/R1/start`, { method: 'POST', body: '{}' })
    expect([refused.status, ((await refused.json()) as { message: string }).message]).toEqual([
      409,
      expect.stringContaining('The memory: symbolic links form a loop'),
    ])
    await lab.act('R1', 'stop')
    await lab.act('R1', 'start')
    await lab.expectNext('R1', 'a')
  })

  it('is reverted when its service is killed, and the machines keep running', async () => {
    const lab = await CountingLab.open()
    await lab.machine('R1', full)
    await lab.expectNext('R1', 'a')
    const keeping = lab.keep('one').catch(() => undefined)
    await appears(() => lab.kept().some((name) => readdirSync(lab.memoryOf(name)).length > 0))
    await lab.service.kill('SIGKILL')
    await keeping
    await lab.service.restart()
    await lab.becomes('R1', 'started')
    await lab.expectNext('R1', 'b')
    // It may have been complete by then.
    const listed: LabSnapshot[] = await lab.service.call('GET', `${campus}/snapshots`)
    expect(listed.map(({ snapshot_id }) => snapshot_id)).toEqual(lab.kept())
    await lab.keep('two')
    await lab.expectNext('R1', 'c')
  })

  it.for([
    ['is restored as a whole by the next service when one is killed after the exchange of files', 'exchanged', 'b'],
    ['is not restored, and nothing changes, when the service is killed before that', 'prepared', 'c'],
  ] as const)('%s', async ([, moment, letter]) => {
    const lab = await CountingLab.open()
    await lab.machine('R1', full)
    await lab.expectNext('R1', 'a')
    const kept = await lab.keep('one')
    await lab.expectNext('R1', 'b')
    const restoring = lab.restore(kept).catch(() => undefined)
    const journal = join(lab.service.data, 'labs', `${lab.project.project_id}.jsonl`)
    await appears(() =>
      moment === 'prepared'
        ? existsSync(join(lab.directory, '.patchbay/restore/next.part'))
        : readFileSync(journal, 'utf8').includes('"way":"on"'),
    )
    await lab.service.kill('SIGKILL')
    await restoring
    await lab.service.restart()
    await lab.becomes('R1', 'started')
    await lab.expectNext('R1', letter)
  })
})

describeWith(requireProgram('qemu-system-x86_64'), requireRoot())('a snapshot of a project that runs', () => {
  it('is 507 on a full disk, leaves nothing, and the machines keep running', async () => {
    const lab = await CountingLab.open({ min_free_space_mb: 1 }, mountSmallDisk)
    await lab.machine('R1')
    await lab.machine('R2', full)
    await lab.expectNext('R1', 'a')
    const before = statfsSync(lab.directory).bavail
    expect(await lab.refusal()).toEqual([507, 'disk-full', expect.stringMatching(/disk is full|free on the disk/)])
    expect(lab.kept()).toEqual([])
    expect(statfsSync(lab.directory).bavail).toBeGreaterThan(before - 64)
    expect(await lab.service.call('GET', `${campus}/snapshots`)).toEqual([])
    expect(await lab.statuses()).toEqual({ R1: 'started', R2: 'started' })
    await lab.expectNext('R1', 'b')
    await lab.expectNext('R2', 'a')
    for (const name of ['R1', 'R2']) await lab.act(name, 'stop')
    await lab.service.end()
  })
})

const full = { hda_disk_image: 'full.img', ram: 128 }

/** Resolves when something is there. It is looked for without a pause of a timer: it may not be there for long. */
async function appears(isThere: () => boolean): Promise<void> {
  for (const until = Date.now() + hangMs; Date.now() < until; await setImmediate()) {
    try {
      if (isThere()) return
    } catch {
      // A directory on the way is not there yet.
    }
  }
  throw new Error('it did not appear')
}

/** Has a directory on a disk of its own. */
function mountSmallDisk(directory: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
}

describeWith(requireProgram('dynamips'))('a snapshot of a router of dynamips that runs', () => {
  it('does not stop it; after a restore it boots with the configuration that it had', async () => {
    const service = await TestService.start({ 'dynamips.path': await niceDynamips(await freshDirectory()) })
    await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
    await writeFile(join(service.data, 'images/dynamips/echo.image'), echoing('c7200'))
    await service.call('POST', '/v2/projects', { name: 'Campus' })
    const properties = { platform: 'c7200', image: 'echo.image', ram: 64 }
    const input = { name: 'R1', node_type: 'dynamips', console_type: 'telnet', properties }
    await service.call('POST', `${campus}/nodes`, input)
    const router = `${campus}/nodes/R1`
    const configure = (text: string) => service.fetch(`${router}/config`, { method: 'PUT', body: text })
    const configuration = async () => (await service.fetch(`${router}/config`)).text()
    const view = () => service.call<LabNode>('GET', router)
    expect((await configure('hostname before\n')).ok).toBe(true)
    await service.call('POST', `${router}/start`)
    const console = await IouConsole.connect((await view()).console ?? 0)
    await console.expect('echo ready')
    const kept = await service.call<LabSnapshot>('POST', `${campus}/snapshots`, { name: 'running' })
    expect(kept).toMatchObject({ running: 1 })
    console.send('still there\r')
    await console.expect('still there')
    await service.call('POST', `${router}/stop`)
    expect((await configure('hostname after\n')).ok).toBe(true)
    await service.call('POST', `${campus}/snapshots/${kept.snapshot_id}/restore`)
    expect(await view()).toMatchObject({ status: 'started', status_reason: null })
    expect(await configuration()).toContain('hostname before')
    await (await IouConsole.connect((await view()).console ?? 0)).expect('echo ready')
    await service.call('POST', `${campus}/close`)
    expect(dynamipsIn(service.data)).toEqual([])
  })
})
