import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { keeperDirectory } from '../../runtime/node/keeper/process/generation.ts'
import { counting } from '../node/drivers/qemu/boot-sectors.ts'
import { echoing } from '../stand-in/mips/programs.ts'
import { reachBits, report } from '../stand-in/report/build.ts'
import { confinedService, confinementOf, launcherOfOther, letRun, otherUid } from './confined.ts'
import { freshDirectory } from './directory.ts'
import { IouConsole, iourc, requireGcc, standIn } from './iou.ts'
import { reserve } from './lab.ts'
import { processesWith } from './processes.ts'
import { requireProgram, requireRoot } from './require.ts'
import type { TestService } from './service.ts'
import { Terminal } from './terminal.ts'
import { describeWith, testWith } from './test-with.ts'

const [root, gcc, qemu, dynamips] = [
  requireRoot(),
  requireGcc(),
  requireProgram('qemu-img'),
  requireProgram('dynamips'),
]
const bwrap = requireProgram('bwrap')

interface Way {
  readonly by: 'bubblewrap' | 'namespaces'
  readonly who: string
  readonly launcher: readonly string[]
  readonly uid: number
}

export const byRoot = { who: 'root', launcher: [], uid: 65_534 }
export const byOther = { who: 'another user', launcher: launcherOfOther, uid: otherUid }

/** Everything that runs in a directory of the service but service and keeper. */
const emulatorsOf = (service: TestService): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const isOurs = readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(service.data)
        return (
          (isOurs || readlinkSync(`/proc/${pid}/cwd`).startsWith(`${service.data}/projects`)) &&
          !/node$/.test(readlinkSync(`/proc/${pid}/exe`))
        )
      } catch {
        return false
      }
    })

export async function newProject(service: TestService): Promise<string> {
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: 'lab' })
  return `/v2/compute/projects/${project_id}`
}

export async function newNode(service: TestService, project: string, kind: string, body: object): Promise<string> {
  const { node_id } = await service.call('POST', `${project}/${kind}/nodes`, body)
  return `${project}/${kind}/nodes/${node_id}`
}

/** The program of a node: the last of its processes that is confined. */
const programIn = (service: TestService, name: string): number => {
  const found = emulatorsOf(service).filter((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith(name))
  return Math.max(...found)
}

/** Tests that emulators are confined: they work, and reach nothing of the host. */
export function confinementTests(ways: readonly Way[]): void {
  describeWith(root, gcc)('outside local mode', () => {
    for (const { by, who, launcher, uid } of ways) {
      const confining = by === 'bubblewrap' && bwrap

      testWith(confining, qemu)(`a machine runs confined: ${by}, ${who}`, async () => {
        const service = await confinedService(by, launcher)
        const image = join(service.data, 'images/machine-emulator/counting.img')
        await writeFile(image, Buffer.concat([counting, Buffer.alloc((16 << 20) - counting.length)]))
        const project = await newProject(service)
        const machine = await newNode(service, project, 'machine-emulator', {
          ...{ name: 'R1', platform: 'x86_64', ram: 16, adapters: 1, console_type: 'telnet', options: '-vga none' },
          hda_disk_image: 'counting.img',
        })
        await service.call('POST', `${machine}/start`)
        const { console } = await service.call<{ console: number }>('GET', machine)
        const terminal = await Terminal.connect(console)
        await terminal.expect('>')
        terminal.type('x')
        await terminal.expect('a')
        const pid = programIn(service, 'qemu-system')
        expect(confinementOf(pid)).toMatchObject({ uid, capabilities: '0000000000000000', depth: 2 })
        expect(readdirSync(`/proc/${pid}/root`)).not.toContain('home')
        expect(readdirSync(`/proc/${pid}/root${service.data}/projects`)).toHaveLength(1)
        expect(() => readdirSync(`/proc/${pid}/root${service.data}/run`)).toThrow('ENOENT')

        await service.call('POST', `${machine}/suspend`)
        await service.call('POST', `${machine}/resume`)
        await service.call('PUT', machine, { cpu_throttling: 50 })
        // The next service takes it over.
        await service.kill('SIGKILL')
        await service.restart()
        expect(await service.call('GET', machine)).toMatchObject({ status: 'started' })
        terminal.type('x')
        await terminal.expect('b')
        // A snapshot has its memory, and it runs on.
        const snapshot = `${project}/snapshots/${randomUUID()}`
        await service.call('POST', snapshot)
        terminal.type('x')
        await terminal.expect('c')
        await service.call('POST', `${machine}/stop`)
        expect(emulatorsOf(service)).toEqual([])
        for (const step of ['prepare', 'commit', 'finish']) {
          if (step === 'commit') await service.call('POST', `${project}/close`)
          await service.call('POST', `${snapshot}/restore`, { step })
        }
        await service.call('POST', '/v2/compute/projects', { name: 'lab', project_id: project.split('/').at(-1) })
        await service.call('POST', `${machine}/start`)
        const restored = await Terminal.connect((await service.call<{ console: number }>('GET', machine)).console)
        restored.type('x')
        await restored.expect('c')
        await service.call('POST', `${machine}/stop`)
        // With the overlay that is there now.
        await service.call('POST', `${machine}/start`)
        // Nothing is left of it when the keeper is killed.
        const [keeper] = processesWith(`keeper.js ${service.data}`)
        if (keeper === undefined) throw new Error('the keeper does not run')
        process.kill(keeper.pid, 'SIGKILL')
        await expect.poll(() => emulatorsOf(service)).toEqual([])
      })

      testWith(confining)(`an image that is a program reaches nothing of the host: ${by}, ${who}`, async () => {
        const service = await confinedService(by, launcher)
        const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
        await once(listener, 'listening')
        onTestFinished(() => void listener.close())
        const { port } = listener.address() as AddressInfo
        const other = await newProject(service)
        const otherDirectory = join(service.data, 'projects', other.split('/').at(-1) ?? '')
        await writeFile(join(otherDirectory, 'secret.txt'), 'of another project', { mode: 0o644 })
        const home = await freshDirectory()
        await chmod(home, 0o777)
        await writeFile(join(home, 'file'), 'x', { mode: 0o644 })
        const spy = await report({
          files: [
            join(otherDirectory, 'secret.txt'),
            join(home, 'file'),
            join(service.data, 'config.toml'),
            '/root/.profile',
          ],
          directories: [otherDirectory, home, join(service.data, 'images/iou'), '/usr/share', '/var/tmp'],
          sockets: [join(keeperDirectory(service.data), 'keeper.sock')],
          ports: [port, Number(new URL(service.url).port)],
          pids: [service.pid, process.pid],
        })
        await letRun(service, by, { 'i86bi-report.bin': spy })
        const project = await newProject(service)
        const router = await newNode(service, project, 'iou', {
          ...{ name: 'R1', path: 'i86bi-report.bin', iourc_content: iourc() },
        })
        await service.call('POST', `${router}/start`)
        const { console, ram } = await service.call<{ console: number; ram: number }>('GET', router)
        expect(ram - 256, 'the sum of what it reached when it was asked for its help').toBe(0)
        const terminal = await Terminal.connect(console)
        const shown = await terminal.expect('done')
        for (const name of Object.keys(reachBits)) expect(shown).toContain(`${name} refused`)
        expect(confinementOf(programIn(service, 'i86bi'))).toMatchObject({
          uid,
          capabilities: '0000000000000000',
          depth: 2,
        })
        await service.call('POST', `${router}/stop`)
        expect(emulatorsOf(service)).toEqual([])
      })

      testWith(confining)(`routers ping each other and keep their configuration: ${by}, ${who}`, async () => {
        const service = await confinedService(by, launcher)
        await letRun(service, by, { 'i86bi-stand-in.bin': await standIn() })
        const project = await newProject(service)
        const image = { path: 'i86bi-stand-in.bin', iourc_content: iourc() }
        const [a, b] = [
          await newNode(service, project, 'iou', { name: 'R1', ...image }),
          await newNode(service, project, 'iou', { name: 'R2', ...image }),
        ]
        const [left, right] = [await reserve(service, project), await reserve(service, project)]
        const nio = (lport: number, rport: number) => ({ type: 'nio_udp', lport, rhost: '127.0.0.1', rport })
        await service.call('POST', `${a}/adapters/0/ports/0/nio`, nio(left, right))
        await service.call('POST', `${b}/adapters/0/ports/0/nio`, nio(right, left))
        const consoles: IouConsole[] = []
        for (const router of [a, b]) {
          await service.call('POST', `${router}/start`)
          const { console } = await service.call<{ console: number }>('GET', router)
          const shell = await IouConsole.connect(console)
          await shell.expect('>')
          consoles.push(shell)
        }
        const [one, two] = consoles
        await one?.setAddress('Ethernet0/0', '10.0.0.1')
        await two?.setAddress('Ethernet0/0', '10.0.0.2')
        expect(await one?.ping('10.0.0.2')).toBeGreaterThan(3)
        await one?.configure('hostname kept')
        await one?.run('write memory')
        await service.call('POST', `${a}/stop`)
        const { node_directory } = await service.call<{ node_directory: string }>('GET', a)
        expect(readFileSync(join(node_directory, 'startup-config.cfg'), 'utf8')).toContain('hostname kept')
        await service.call('POST', `${a}/start`)
        const { console } = await service.call<{ console: number }>('GET', a)
        await (await IouConsole.connect(console)).expect('kept>')
        await service.call('POST', `${a}/stop`)
        await service.call('POST', `${b}/stop`)
        expect(emulatorsOf(service)).toEqual([])
      })

      testWith(confining, dynamips)(`dynamips runs confined and takes commands: ${by}, ${who}`, async () => {
        const service = await confinedService(by, launcher)
        await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
        await writeFile(join(service.data, 'images/dynamips/router.image'), echoing('c7200'), { mode: 0o644 })
        const project = await newProject(service)
        const router = await newNode(service, project, 'dynamips', {
          ...{ name: 'R1', platform: 'c7200', image: 'router.image', ram: 64 },
        })
        await service.call('POST', `${router}/start`)
        expect(confinementOf(programIn(service, 'dynamips'))).toMatchObject({ uid, depth: 2 })
        const { console } = await service.call<{ console: number }>('GET', router)
        await (await IouConsole.connect(console)).expect('echo ready')
        await service.call('POST', `${router}/suspend`)
        await service.call('POST', `${router}/resume`)
        await service.call('POST', `${router}/stop`)
        expect(emulatorsOf(service)).toEqual([])
      })
    }
  })
}
