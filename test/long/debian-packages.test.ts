import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packDeb, packNodeDeb } from '../../scripts/packages/deb.ts'
import { run } from '../../scripts/packages/program.ts'
import { counting } from '../node/drivers/qemu/boot-sectors.ts'
import { booting } from '../node/drivers/qemu/machine-lab.ts'
import { qemuName } from '../node/drivers/qemu/qemu-process.ts'
import { DebianMachine, requireDebian } from '../support/debian-machine.ts'
import { attach, createLab, createPc, openConsole, reserve, start, startPcs } from '../support/lab.ts'
import { freePort, portRanges } from '../support/ports.ts'
import { requireProgram } from '../support/require.ts'
import { Terminal } from '../support/terminal.ts'
import { describeWith } from '../support/test-with.ts'

const needed = requireDebian()
/** Dpkg-deb of these tests; the packages for users are smaller. */
const quickly = ['-Zgzip', '-z1']
/** The largest exposure of the unit that systemd-analyze(1) may find, in tenths. */
const largestExposure = 35

describeWith(needed)('the Debian packages', () => {
  let packages = ''
  let [first, second, node] = ['', '', '']
  beforeAll(async () => {
    if (needed.skip) return
    packages = await mkdtemp(join(tmpdir(), 'patchbay-debs-'))
    const pack = async (file: Promise<string>) => join('/packages', (await file).slice(packages.length))
    first = await pack(packDeb(packages, { compression: quickly }))
    second = await pack(packDeb(packages, { compression: quickly, version: '0.1.0-2', build: 'second' }))
    node = await pack(packNodeDeb(packages, { compression: quickly }))
  })
  afterAll(() => rm(packages, { recursive: true, force: true }))

  test('have no errors of lintian', async () => {
    const files = [first, node].map((it) => join(packages, it.slice('/packages'.length)))
    const { stdout } = await run('lintian', ['--fail-on', 'error', '--allow-root', ...files]).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).not.toMatch(/^E:/m)
  })

  test('are installed, upgraded while guests keep running, removed with their guests, and purged', async () => {
    const machine = await DebianMachine.create(packages)
    // Machines whose Node does not come from a package have it from ours.
    const hasNode = await machine.run('dpkg-query', '--show', 'nodejs').then(
      () => true,
      () => false,
    )
    await machine.run('dpkg', '--install', first, ...(hasNode ? [] : [node]))
    expect(await machine.run('stat', '-c', '%a %U', '/etc/patchbay/token', '/var/lib/patchbay')).toBe(
      '600 root\n700 patchbay\n',
    )
    await machine.run('systemd-analyze', 'verify', '/lib/systemd/system/patchbay.service')
    const threshold = `--threshold=${largestExposure}`
    await machine.run('systemd-analyze', 'security', '--offline=true', threshold, 'patchbay.service')

    const service = new UnitService(machine)
    await service.configure()
    await service.start()
    const doctor = await service.run('/usr/bin/patchbay', 'doctor', '--config', config)
    expect(doctor).toMatch(/^ok +confinement +bubblewrap/m)
    expect((await fetch(`${service.url}/v2/projects`)).status).toBe(401)
    const lab = await createLab(service)
    const console = await startPcs(service, lab)
    console.type('ping 10.0.0.2 -c 1000 -i 20\r')
    await console.expect('icmp_seq=3 ')
    const counter = requireProgram(qemuName).skip ? undefined : await service.counter(lab.project)

    await machine.run('dpkg', '--install', second, node)
    expect(await machine.run('cat', config)).toContain(`port = ${service.port}`)
    // The signal of systemd for KillMode=process.
    await service.stop()
    await service.start()
    expect(await service.run('/usr/bin/patchbay', 'doctor', '--config', config)).toMatch(/^ok +Node.js +v24/m)
    const numbers = [...(await console.expect('icmp_seq=100 ')).matchAll(/icmp_seq=(\d+) /g)].map((it) => Number(it[1]))
    expect(numbers).toEqual(Array.from({ length: 97 }, (_, index) => index + 4))
    if (counter !== undefined) {
      counter.type('x')
      await counter.expect('b')
    }
    const pc3 = await createPc(service, lab.project, 3)
    const [a, b] = [await reserve(service, lab.project), await reserve(service, lab.project)]
    await service.call('DELETE', `${lab.pc2}/adapters/0/ports/0/nio`)
    await attach(service, pc3, a, b)
    await attach(service, lab.pc2, b, a)
    await start(service, pc3)
    const other = await openConsole(service, pc3)
    other.type('ping 10.0.0.2 -c 1\r')
    await other.expect('icmp_seq=1 ttl=64')

    await service.stop()
    expect(await service.processes()).not.toEqual([])
    await machine.run('dpkg', '--remove', 'patchbay')
    expect(await service.processes()).toEqual([])
    await machine.run(
      'sh',
      '-c',
      `test ! -e /usr/lib/patchbay && test -e ${config} && test -e /var/lib/patchbay/projects`,
    )
    await machine.run('dpkg', '--purge', 'patchbay', 'patchbay-node')
    await machine.run('sh', '-c', 'test ! -e /etc/patchbay && test ! -e /var/lib/patchbay && ! id patchbay')
  })
})

const config = '/etc/patchbay/patchbay.toml'

/** The service as its unit starts it, where no systemd runs: the command, the user, the privileges and the credential. */
class UnitService {
  readonly port = freePort()
  readonly url = `http://127.0.0.1:${this.port}`
  readonly #machine: DebianMachine
  #token = ''
  #ended: Promise<unknown> = Promise.resolve()

  constructor(machine: DebianMachine) {
    this.#machine = machine
  }

  async configure(): Promise<void> {
    const settings = { port: this.port, ...portRanges() }
    const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    const more = [
      ...lines,
      'require_sandbox = true',
      '[pc]',
      'engine = "embedded"',
      '[machine_emulator]',
      'acceleration = "tcg"',
    ]
    await this.#machine.run('sh', '-c', `printf '%s\\n' "$@" >>${config}`, 'sh', ...more)
    this.#token = (await this.#machine.run('cat', '/etc/patchbay/token')).trim()
  }

  async start(): Promise<void> {
    const unit = await this.#machine.run('cat', '/lib/systemd/system/patchbay.service')
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
    const [credential = '', secret = ''] = setting('LoadCredential').split(':')
    const prepare =
      'install -d -o patchbay /run/credentials /var/cache/patchbay && install -m 0400 -o patchbay "$1" "/run/credentials/$2"'
    await this.#machine.run('sh', '-c', prepare, 'sh', secret, credential)
    const child = this.#machine.start(...this.#asUser(setting('ExecStart').split(' ')))
    this.#ended = once(child, 'exit')
    for await (const line of createInterface({ input: child.stdout })) if (line.includes('is ready on')) return
    throw new Error('the service ended before it was ready')
  }

  /** Signals the process of the service alone. */
  async stop(): Promise<void> {
    await this.#machine.run('pkill', '-TERM', '-u', 'patchbay', '-f', 'patchbay.js serve')
    await this.#ended
  }

  /** The output of a command that the user of the service runs, with its privileges. */
  run(...command: readonly string[]): Promise<string> {
    return this.#machine.run(...this.#asUser(command))
  }

  async processes(): Promise<string[]> {
    const names = await this.#machine.run('ps', '-u', 'patchbay', '-o', 'args=').catch(() => '')
    return names.split('\n').filter((it) => it !== '')
  }

  /** A machine that runs and counts; its console after the first number. */
  async counter(project: string): Promise<Terminal> {
    const disk = Buffer.concat([counting, Buffer.alloc(1 << 20)])
    await this.#send('POST', '/v2/compute/machine-emulator/images/counting.img', disk)
    const { node_id } = await this.call<{ node_id: string }>('POST', `${project}/machine-emulator/nodes`, {
      ...{ name: 'M1', ...booting('counting.img') },
    })
    const path = `${project}/machine-emulator/nodes/${node_id}`
    await this.call('POST', `${path}/start`)
    const { console: port, status_reason } = await this.call<{ console: number; status_reason: unknown }>('GET', path)
    // No warning that it runs without confinement.
    expect(status_reason).toBe(null)
    const terminal = await Terminal.connect(port)
    await terminal.expect('>')
    terminal.type('x')
    await terminal.expect('a')
    return terminal
  }

  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const text = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body))
    return (text === '' ? undefined : JSON.parse(text)) as T
  }

  async #send(method: string, path: string, body: string | Buffer<ArrayBuffer> | undefined): Promise<string> {
    const headers = { authorization: `Bearer ${this.#token}` }
    const answer = await fetch(this.url + path, { method, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }

  /** systemd.exec(5): User, NoNewPrivileges, CapabilityBoundingSet, LoadCredential, CacheDirectory. */
  #asUser(command: readonly string[]): string[] {
    const privileges = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']
    const variables = [
      ...['PATH=/usr/local/bin:/usr/bin:/bin', 'HOME=/var/lib/patchbay', 'LANG=C.UTF-8'],
      ...['CREDENTIALS_DIRECTORY=/run/credentials', 'CACHE_DIRECTORY=/var/cache/patchbay'],
    ]
    const identity = ['--reuid=patchbay', '--regid=patchbay', '--init-groups']
    return ['setpriv', ...identity, ...privileges, 'env', '--ignore-environment', ...variables, ...command]
  }
}
