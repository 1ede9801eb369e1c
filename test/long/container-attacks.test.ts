import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { requireEngine } from '../../runtime/node/drivers/container/engine.ts'
import { ImageStore } from '../../runtime/node/drivers/container/image-store.ts'
import {
  busyboxLayer,
  type ImageSays,
  requireContainers,
  requireControlGroups,
  writeImage,
} from '../support/container-image.ts'
import { attach, reserve } from '../support/lab.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { type TarEntry, tarHeader, tarOf } from '../support/tar.ts'
import { Terminal } from '../support/terminal.ts'
import { describeWith, testWith } from '../support/test-with.ts'

const needed = await requireContainers()
/** Compiles what containers try by system calls. */
const compiler = requireProgram('gcc')

let place = ''
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'patchbay-attacks-'))
})
afterAll(() => rm(place, { recursive: true, force: true }))

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

describe('an image', () => {
  const say = (diffIds: readonly string[], config: object = {}) =>
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: diffIds.map((it) => `sha256:${it}`) },
    })

  /** An archive of `docker save`. */
  function saved(layers: readonly Uint8Array[], config: string): Uint8Array {
    const names = layers.map((_, index) => `layer-${index}.tar`)
    const manifest = [{ Config: 'config.json', RepoTags: ['test:latest'], Layers: names }]
    return tarOf([
      { name: 'manifest.json', data: JSON.stringify(manifest) },
      { name: 'config.json', data: config },
      ...layers.map((data, index) => ({ name: `layer-${index}.tar`, data })),
    ])
  }

  const files = (...layers: readonly (readonly TarEntry[])[]) => {
    const tars = layers.map(tarOf)
    return saved(tars, say(tars.map(sha256)))
  }
  const says = (config: object, ...entries: readonly TarEntry[]) => {
    const layer = tarOf([{ name: 'file' }, ...entries])
    return saved([layer], say([sha256(layer)], config))
  }

  /** An OCI archive of one layer; one that is compressed already is kept as it is. */
  function oci(
    tar: Uint8Array,
    { blob = gzipSync(tar), manifestSays = {} as object, config = say([sha256(tar)]) } = {},
  ) {
    const layer = gzipSync(tar)
    const described = (type: string, of: string | Uint8Array) => ({
      mediaType: `application/vnd.oci.image.${type}`,
      digest: `sha256:${sha256(of)}`,
      size: of.length,
    })
    const manifest = JSON.stringify({
      schemaVersion: 2,
      config: described('config.v1+json', config),
      layers: [described('layer.v1.tar+gzip', layer)],
      ...manifestSays,
    })
    return tarOf([
      { name: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
      {
        name: 'index.json',
        data: JSON.stringify({ schemaVersion: 2, manifests: [described('manifest.v1+json', manifest)] }),
      },
      { name: `blobs/sha256/${sha256(manifest)}`, data: manifest },
      { name: `blobs/sha256/${sha256(config)}`, data: config },
      { name: `blobs/sha256/${sha256(layer)}`, data: blob },
    ])
  }

  const x = { data: 'x' }
  const etc = (entry: Omit<TarEntry, 'name'>) => [
    { name: 'etc', type: 'directory', mode: 0o755 } as const,
    { name: 'etc/passwd', ...entry },
  ]
  const zeros = Buffer.alloc(1 << 20)
  /** A file of 400 MB of zeros, as 400 members of a gzip stream; and the digest of the layer. */
  const bomb = () => {
    const header = tarHeader({ name: 'zeros' }, 400 << 20)
    const [packed, sum] = [gzipSync(zeros), createHash('sha256').update(header)]
    for (let part = 0; part < 400; part++) sum.update(zeros)
    return {
      layer: Buffer.concat([gzipSync(header), ...Array.from({ length: 400 }, () => packed)]),
      diff: sum.digest('hex'),
    }
  }
  const many = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `${index}` }))
  const freeMb = () => {
    const { bavail, bsize } = statfsSync(tmpdir())
    return (bavail * bsize) / 2 ** 20
  }
  const layer = tarOf([{ name: 'file' }])

  interface Attack {
    readonly name: string
    readonly image: () => Uint8Array
    /** The reason of its refusal, or the files that it has. */
    readonly end: RegExp | readonly string[]
    readonly minFreeMb?: () => number
  }
  const attacks: readonly Attack[] = [
    {
      name: 'has paths that lead up',
      image: () =>
        files([
          { name: '../../escaped', ...x },
          { name: '../runtime.json', ...x },
          { name: 'a/../../escaped-2', ...x },
        ]),
      end: ['escaped', 'escaped-2', 'runtime.json'],
    },
    {
      name: 'has absolute paths',
      image: () =>
        files([
          { name: '/mnt/to/escaped', ...x },
          { name: '/tmp/escaped', ...x },
        ]),
      end: ['mnt', 'mnt/to', 'mnt/to/escaped', 'tmp', 'tmp/escaped'],
    },
    {
      name: 'has a link out of it and a file through it',
      image: () =>
        files([
          { name: 'out', type: 'link', link: '/mnt/to' },
          { name: 'out/escaped', ...x },
        ]),
      end: ['mnt', 'mnt/to', 'mnt/to/escaped', 'out'],
    },
    {
      name: 'has a link up and a file through it in another layer',
      image: () => files([{ name: 'out', type: 'link', link: '../../tmp' }], [{ name: 'out/escaped', ...x }]),
      end: ['out', 'tmp', 'tmp/escaped'],
    },
    {
      name: 'replaces its root by a link',
      image: () =>
        files([
          { name: '.', type: 'link', link: '/tmp' },
          { name: 'escaped', ...x },
        ]),
      end: /refusing to change type of root directory/,
    },
    ...['../../etc/passwd', '/etc/passwd', '/mnt/from', '/proc/self/environ'].map((link) => ({
      name: `has a hard link to ${link}`,
      image: () => files([{ name: 'hard', type: 'hardLink', link }]),
      end: /no such file/,
    })),
    {
      name: 'has a hard link through a link out of it',
      image: () =>
        files([
          { name: 'out', type: 'link', link: '/mnt/to/oci' },
          { name: 'hard', type: 'hardLink', link: 'out/index.json' },
        ]),
      end: /no such file/,
    },
    {
      name: 'has devices',
      image: () =>
        files([
          { name: 'disk', type: 'block', device: [254, 0], mode: 0o666 },
          { name: 'memory', type: 'character', device: [1, 1], mode: 0o666 },
        ]),
      end: ['disk', 'memory'],
    },
    {
      name: 'has setuid files and a pipe',
      image: () =>
        files([
          { name: 'setuid', mode: 0o6755, ...x },
          { name: 'pipe', type: 'pipe' },
        ]),
      end: ['pipe', 'setuid'],
    },
    {
      name: 'removes all that is above it',
      image: () => files([{ name: '../.wh.oci' }, { name: '../../.wh.mnt' }, { name: '../../tmp/.wh.escaped' }]),
      end: [],
    },
    {
      name: 'removes its own directory',
      image: () => files([{ name: 'a', ...x }], [{ name: '.wh..' }, { name: '.wh...' }]),
      end: /no such file/,
    },
    {
      name: 'has names with escapes and bytes that are no text',
      image: () =>
        files([
          { name: 'a\nb\u001b[31m', ...x },
          { name: Uint8Array.of(0xff, 0xfe), ...x },
        ]),
      end: ['a\nb\u001b[31m', '\ufffd\ufffd'],
    },
    {
      name: 'has escapes in what is wrong with it',
      image: () => files([{ name: 'a\u001b[31m', type: 'hardLink', link: '/nothing' }]),
      end: /^[^\p{Cc}]*no such file[^\p{Cc}]*$/u,
    },
    { name: 'has 20,000 files', image: () => files(many(20_000)), end: /more than 5000 files/ },
    {
      name: 'is 400 MB of zeros',
      image: () => {
        const { layer, diff } = bomb()
        return saved([layer], say([diff]))
      },
      end: /the disk is nearly full/,
      minFreeMb: () => freeMb() - 100,
    },
    {
      name: 'is for a disk that is full',
      image: () => files([{ name: 'file' }]),
      end: /MB are free on the disk/,
      minFreeMb: () => freeMb() + 10_000,
    },
    {
      name: 'has a layer that is no archive',
      image: () => saved([zeros.fill(7)], say([sha256(zeros)])),
      end: /invalid tar/,
    },
    {
      name: 'has a layer of another digest',
      image: () => saved([layer], say([sha256('other')])),
      end: /digest|match/i,
    },
    {
      name: 'has a blob of another digest',
      image: () => oci(layer, { blob: Buffer.from(tarOf([{ name: 'evil' }])) }),
      end: /digest|match/i,
    },
    { name: 'has a manifest that is no JSON', image: () => tarOf([{ name: 'manifest.json', data: '[' }]), end: /./ },
    { name: 'has a config that is no JSON', image: () => saved([layer], 'rubbish'), end: /./ },
    {
      name: 'has a config of other types',
      image: () => oci(layer, { config: '{"config":{"Cmd":7},"rootfs":[]}' }),
      end: /./,
    },
    { name: 'has words that are no strings', image: () => says({ Cmd: [7] }), end: /./ },
    { name: 'is no archive', image: () => zeros.fill(9), end: /./ },
    {
      name: 'gives a layer out as what it says',
      image: () => {
        const large = tarOf([{ name: 'large', data: randomBytes(6 << 20) }])
        const digest = `sha256:${sha256(gzipSync(large))}`
        return oci(large, { manifestSays: { more: { config: { digest } } } })
      },
      end: ['large'],
    },
    { name: 'wants a user who does not exist', image: () => says({ User: 'nobody-here' }), end: /unable to find user/ },
    { name: 'wants a user beyond the ids', image: () => says({ User: '4000000000' }), end: /./ },
    {
      name: 'has a pipe for its users',
      image: () => says({ User: 'root' }, ...etc({ type: 'pipe' })),
      end: /is not a file of/,
    },
    {
      name: 'has a link to the users of the host',
      image: () => says({ User: 'root' }, ...etc({ type: 'link', link: '/etc/passwd' })),
      end: /is not a file of/,
    },
    {
      name: 'has a link to endless users',
      image: () => says({ User: 'root' }, ...etc({ type: 'link', link: '/dev/zero' })),
      end: /is not a file of/,
    },
  ]

  testWith(needed).for(attacks)('that $name reaches nothing else', async ({ image, end, minFreeMb }) => {
    const own = await mkdtemp(join(place, 'image-'))
    const file = join(own, 'image.tar')
    await writeFile(file, image())
    const store = join(own, 'store')
    const least = minFreeMb?.() ?? 0
    const images = new ImageStore(store, () => least, 5000)
    const unpacked = images.unpacked(requireEngine(), file, 'md5', AbortSignal.timeout(20_000))
    if (end instanceof RegExp) {
      await expect(unpacked).rejects.toThrow(end)
      expect(await readdir(store).catch(() => [])).toEqual([])
    } else {
      const { rootfs } = await unpacked
      expect((await readdir(join(rootfs, '..'))).sort()).toEqual(['image.json', 'rootfs', 'runtime.json'])
      expect((await readdir(rootfs, { recursive: true })).sort()).toEqual(end)
      for (const name of ['disk', 'memory'].filter((it) => end.includes(it)))
        expect(statSync(join(rootfs, name)).isFile()).toBe(true)
    }
    expect((await readdir(own)).filter((it) => it !== 'store')).toEqual(['image.tar'])
    expect([tmpdir(), '/', '/mnt'].flatMap((it) => readdirSync(it)).filter((it) => it.startsWith('escaped'))).toEqual(
      [],
    )
  })
})

const waitMs = 15_000

/** A shell in a running container. */
class Shell {
  readonly #terminal: Terminal

  private constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  static async open(port: number): Promise<Shell> {
    const terminal = await Terminal.connect(port)
    await terminal.expect('# ', waitMs)
    const shell = new Shell(terminal)
    await shell.run('stty -echo')
    return shell
  }

  /** What a line writes. */
  async run(line: string): Promise<string> {
    // The console also shows what earlier lines wrote.
    const mark = randomBytes(4).toString('hex')
    this.#terminal.type(`echo "<""${mark}"; (${line}) 2>&1; echo ">""${mark}"\r`)
    await this.#terminal.expect(`<${mark}\r\n`, waitMs)
    return (await this.#terminal.expect(`>${mark}`, waitMs)).replaceAll('\r', '').slice(0, -9)
  }
}

describeWith(needed, compiler)('the content of a container', () => {
  let service: TestService
  let project = ''
  let image = ''
  const secret = 'the secret of the service'
  const nodes = { plain: '', admin: '', other: '' }
  type Name = keyof typeof nodes

  const layerOf = (entries: readonly TarEntry[]) => tarOf(entries)

  beforeAll(async () => {
    const program = join(place, 'attack')
    execFileSync('gcc', ['-static', '-O1', '-o', program, join(import.meta.dirname, '../support/attack.c')])
    const attack = readFileSync(program)
    image = join(place, 'attack.tar')
    // The first process is no shell that reads: one of busybox ends when it hears of a child that is not its own.
    const own = layerOf([
      { name: 'bin/attack', mode: 0o755, data: attack },
      { name: 'bin/setuid', mode: 0o4755, data: attack },
    ])
    await writeImage(image, [await busyboxLayer(), own], { Cmd: ['/bin/sh', '-c', 'while :; do sh; done'] })
    service = await TestService.startForAll({})
    await writeFile(join(service.data, 'secret'), secret, { mode: 0o600 })
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', {
      name: 'attacks',
    })
    project = `/v2/compute/projects/${project_id}`
    const capabilities = ['SYS_ADMIN', 'SYS_PTRACE', 'SYS_RESOURCE', 'SYS_NICE', 'IPC_LOCK', 'AUDIT_WRITE', 'MKNOD']
    nodes.plain = await create({ name: 'plain', adapters: 2, processes: 64 })
    nodes.admin = await create({ name: 'admin', adapters: 2, capabilities, exec: 'ip addr add 10.0.0.2/24 dev eth1' })
    nodes.other = await create({ name: 'other', adapters: 2, exec: 'ip addr add 10.0.0.3/24 dev eth1' })
    await link(nodes.plain, nodes.other, 0)
    await link(nodes.admin, nodes.other, 1)
    for (const node of Object.values(nodes)) await service.call('POST', `${node}/start`)
  })
  afterAll(async () => {
    if (project !== '') await service.call('DELETE', project)
    await rm(join(service.data, 'secret'))
    await service.close()
  })

  async function create(settings: object): Promise<string> {
    const { node_id } = await service.call<{ node_id: string }>('POST', `${project}/container/nodes`, {
      image,
      ...settings,
    })
    return `${project}/container/nodes/${node_id}`
  }

  async function link(one: string, another: string, adapter: number): Promise<void> {
    const [a, b] = [await reserve(service, project), await reserve(service, project)]
    await attach(service, one, a, b, adapter)
    await attach(service, another, b, a, adapter)
  }

  const shellOf = async (node: string) => Shell.open((await service.call<{ console: number }>('GET', node)).console)

  /** The service and the other nodes go on. */
  async function alive(): Promise<void> {
    const states = Object.values(nodes).map(
      async (node) => (await service.call<{ status: string }>('GET', node)).status,
    )
    expect(await Promise.all(states)).toEqual(['started', 'started', 'started'])
    const other = await shellOf(nodes.other)
    expect(await other.run('ping -c 1 -W 5 10.0.0.2')).toContain('1 packets received')
  }

  const host = (file: string) => readFileSync(file, 'latin1')
  const kernel = (...names: readonly string[]) => names.map((it) => `/proc/sys/${it}`)
  const theHost = kernel(
    'kernel/core_pattern',
    'kernel/hostname',
    'kernel/panic',
    'kernel/randomize_va_space',
    'fs/file-max',
  )
  const refusals = /denied|not permitted|Read-only|nonexistent|Invalid|No such|can't|busy/

  interface Try {
    readonly name: string
    readonly line: string | (() => string)
    /** Where it is tried; both when it says nothing. */
    readonly as?: Name
    /** What is written, and what is not. */
    readonly says?: RegExp
    readonly never?: RegExp
  }
  const tries: readonly Try[] = [
    {
      name: 'mounts disks and file systems of the host',
      line: 'mkdir -p /m; for it in "ext4 /dev/vda" "devtmpfs d" "debugfs d" "tracefs t" "securityfs s" "cgroup c" "cgroup2 c"; do set -- $it; mount -t $1 $2 /m && echo DONE; done',
      never: /DONE/,
    },
    {
      name: 'makes devices',
      line: 'mknod /d b 254 0 && echo DONE; mknod /e c 1 1 && echo DONE; mknod /f b 8 0 && echo DONE',
      never: /DONE/,
    },
    {
      name: 'reads the memory of the kernel',
      line: 'for it in kcore kmsg kpagecount kpageflags; do head -c 64 /proc/$it >/tmp/x && test -s /tmp/x && echo DONE; done; dmesg && echo DONE; grep -v "^0* " /proc/kallsyms | head -1',
      never: /DONE|^[0-9a-f]{16} /m,
    },
    {
      name: 'restarts by the keys of the kernel',
      line: 'echo h >/proc/sysrq-trigger && echo DONE',
      never: /DONE/,
      says: refusals,
    },
    {
      name: 'changes parameters of the kernel',
      line: () =>
        `for it in ${[...theHost, ...kernel('kernel/modprobe', 'kernel/sysrq', 'kernel/poweroff_cmd', 'vm/overcommit_memory', 'fs/suid_dumpable')].join(' ')}; do echo 7 >$it && echo DONE; done`,
      as: 'plain',
      never: /DONE/,
    },
    {
      name: 'writes to /sys',
      line: 'find /sys -type f -perm -200 | head -300 | while read it; do echo 1 >$it && echo DONE $it; done; mount -o remount,rw /sys; for it in /sys/power/state /sys/kernel/mm/ksm/run /sys/module/*/parameters/* /sys/kernel/uevent_helper /sys/block/*/queue/scheduler; do echo 1 >$it && echo DONE; done',
      never: /DONE/,
    },
    {
      name: 'uncovers what is masked',
      line: 'umount /proc/keys /proc/timer_list /proc/acpi /sys/firmware /proc/bus /proc/irq; mkdir -p /m; for it in /proc /m; do test $it = /proc || mount -t proc p /m || break; head -c 9 $it/timer_list | grep . && echo DONE; echo 1 >$it/irq/default_smp_affinity && echo DONE; echo h >$it/sysrq-trigger && echo DONE; done; umount /m',
      never: /DONE/,
    },
    { name: 'makes user namespaces', line: 'attack namespace', as: 'plain', never: /DONE/, says: /No space left/ },
    {
      name: 'raises its limits',
      line: 'echo 9999 >/proc/sys/user/max_user_namespaces && echo DONE; attack namespace; ulimit -u 999999 && echo DONE',
      as: 'plain',
      never: /DONE/,
    },
    {
      name: 'makes network namespaces without end',
      line: 'echo 999999 >/proc/sys/user/max_net_namespaces; attack namespaces 100000',
      as: 'admin',
      says: /made 25\d\n/,
    },
    { name: 'becomes root by a setuid program', line: "su user -c '/bin/setuid id'", says: /euid 1000/ },
    {
      name: 'gains capabilities',
      line: 'grep NoNewPrivs /proc/self/status; unshare -m true && echo DONE; mount -t tmpfs x /tmp && echo DONE; chroot / unshare -n true && echo DONE',
      as: 'plain',
      says: /NoNewPrivs:\s1/,
      never: /DONE/,
    },
    {
      name: 'reads files of the service',
      line: () =>
        `for it in "" /proc/1/root /proc/self/root /proc/1/cwd /proc/1/fd/* /proc/self/fd/* /proc/*/task/*/root /..; do cat $it${service.data}/secret $it/../../../..${service.data}/secret; done; ls /mnt`,
      never: /the secret|bundle|layer/,
    },
    {
      name: 'reads files of the host',
      line: 'cat /etc/shadow /proc/1/root/etc/shadow; cat /proc/1/environ /proc/1/cmdline /proc/*/environ | tr "\\0" "\n"; readlink /proc/1/cwd /proc/1/root',
      never: new RegExp(`root:[*!$]|PATCHBAY|VITEST|${hostname()}|perl`),
    },
    {
      name: 'sees processes of the host',
      line: () =>
        `ls /proc | grep -x ${service.pid}; cat /proc/[0-9]*/cmdline | tr "\\0" " "; ls -d /proc/[0-9]* | wc -l`,
      never: /patchbay|perl|crun|node |\b\d{3,}\n$/,
    },
    {
      name: 'kills processes of the host',
      line: () => `kill -9 ${service.pid} ${process.pid} 1; echo -n ok`,
      says: /ok/,
    },
    {
      name: 'traces processes of the host',
      line: () => `attack ptrace ${service.pid}; attack ptrace ${process.pid}`,
      never: /DONE/,
      says: /No such process|not permitted/,
    },
    { name: 'makes calls of administrators', line: 'attack calls', never: /DONE/, says: /reboot: / },
    { name: 'takes all keys', line: 'attack keyrings 300', says: /made 0/ },
    { name: 'takes all inotify instances of the user of the service', line: 'attack inotify 1000', says: /made 16/ },
    {
      name: 'connects to abstract sockets of the host',
      line: () => `attack abstract ${abstractName}`,
      never: /DONE/,
      says: /refused/,
    },
    {
      name: 'connects to the service',
      line: () =>
        `ip link set lo up; echo | nc -w 1 127.0.0.1 ${new URL(service.url).port} && echo DONE; wget -q -T 1 -O - ${service.url}/v2/compute/version`,
      never: /DONE|version"/,
    },
    {
      name: 'sees and changes links of the host',
      line: 'ip -o link; ip link add d0 type dummy; ip link set eth0 netns 1 && ip link show eth0; ip link add v0 type veth peer name v1 netns 1; ip route add 203.0.113.0/24 dev lo; cat /proc/net/dev',
      says: /eth0/,
      never: /docker|ens|enp|virbr/,
    },
    {
      name: 'takes memory of mounts beyond their limits',
      line: 'for it in /dev/shm /run /dev; do dd if=/dev/zero of=$it/full bs=1M count=100 && echo DONE; rm $it/full; done',
      never: /DONE/,
      says: /No space left/,
    },
    {
      name: 'changes devices of all',
      line: 'for it in null zero random tty; do chmod 0 /dev/$it && echo DONE; chown 1 /dev/$it && echo DONE; done; rm /dev/null && echo DONE',
      never: /DONE/,
    },
    {
      name: 'takes a priority of the host',
      says: /^1000\n/,
      line: 'cat /proc/self/oom_score_adj; echo -1000 >/proc/self/oom_score_adj && echo DONE; attack calls | grep priority',
      never: /DONE/,
    },
    { name: 'changes its name for others', line: 'hostname evil; echo -n ok', says: /ok/ },
    {
      name: 'writes over the program of its engine',
      line: () =>
        `ls -l /proc/1/exe; for it in /proc/*/exe; do case $(readlink $it) in *crun*|*perl*) echo DONE;; esac; done`,
      never: /DONE/,
    },
    { name: 'starts processes without end', line: 'attack processes 3000', as: 'plain', says: /made [1-3]\d\n/ },
    { name: 'starts processes without end', line: 'attack processes 3000', as: 'admin', says: /made (4|5)\d\d\n/ },
    { name: 'floods its network', line: 'ip addr add 10.0.9.1/24 dev eth0; attack flood eth0', says: /sent many/ },
    {
      name: 'makes names with escapes, and depths',
      line: `mkdir -p "/deep/$(seq 1 300 | tr '\\n' '/')"; cd /deep; for it in 1 2 3; do touch "$(printf 'a\\n\\033[31m%s' $it)" "-rf $it" "..$it" ".. $it"; done; ls /deep | wc -l; chmod 0 /deep`,
      says: /\d/,
    },
    {
      name: 'changes what others see of the image',
      line: 'echo evil >/etc/group; rm /bin/ping; echo evil >/evil; touch /dev/mqueue/evil; echo -n ok',
      says: /ok/,
    },
  ]

  let abstractName = ''
  beforeAll(async () => {
    abstractName = `patchbay-attacks-${process.pid}`
    const server = createServer(() => {}).listen(`\0${abstractName}`)
    return () => void server.close()
  })

  const rows = tries.flatMap((it) =>
    (it.as === undefined ? (['plain', 'admin'] as const) : [it.as]).map((as) => ({ ...it, as })),
  )

  testWith(needed, compiler).for(rows)('as $as, it $name', async ({ as, line, says, never }) => {
    const before = theHost.map(host)
    const routes = host('/proc/net/route')
    const shell = await shellOf(nodes[as])
    const text = typeof line === 'string' ? line : line()
    const written = await shell.run(text)
    if (says !== undefined) expect(written).toMatch(says)
    if (never !== undefined) expect(written).not.toMatch(never)
    expect(theHost.map(host)).toEqual(before)
    expect(host('/proc/net/route')).toBe(routes)
    expect(hostname()).not.toBe('evil')
    await alive()
  })

  testWith(needed, compiler)('has no more rights in a further console, and no more than 16 of them', async () => {
    const before = theHost.map(host)
    const path = (name: string) => `${nodes.admin}/console/ws?name=${name}`
    const consoles: WebSocket[] = []
    const open = () =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(`${service.url.replace('http', 'ws')}${path('shell')}`)
        consoles.push(socket)
        socket.onmessage = () => resolve('open')
        socket.onerror = () => resolve('refused')
      })
    const states = await Promise.all(Array.from({ length: 20 }, open))
    expect(states.filter((it) => it === 'open')).toHaveLength(16)
    for (const socket of consoles) socket.close()
    // Each ends with its viewer, and there is room again.
    await expect.poll(open, { timeout: waitMs }).toBe('open')
    const last = consoles.at(-1) as WebSocket
    let shown = ''
    last.binaryType = 'arraybuffer'
    last.onmessage = ({ data }) => {
      shown += typeof data === 'string' ? data : new TextDecoder().decode(data)
    }
    last.send(
      'for it in /proc/self/fd/*; do readlink $it; done; grep -E "NoNewPrivs|Seccomp:" /proc/self/status; attack calls; echo E""ND\r',
    )
    await expect.poll(() => shown, { timeout: waitMs }).toContain('END')
    expect(shown).toMatch(/NoNewPrivs:\t1[\s\S]*Seccomp:\t2/)
    expect(shown).not.toMatch(/socket:|net\/tun|\/mnt\/|DONE/)
    last.close()
    expect(theHost.map(host)).toEqual(before)
    await alive()
  })

  testWith(
    needed,
    compiler,
    requireControlGroups(),
  )('has no more memory than it is given', async () => {
    const node = await create({ name: 'bomb', ram: 64, cpus: 0.5 })
    await service.call('POST', `${node}/start`)
    const shell = await shellOf(node)
    const line =
      'for it in 1 2 3; do dd if=/dev/zero of=/dev/null bs=300M count=1; done; cat /dev/zero | head -c 100m | tail -c 90m | wc -c; echo -n ok'
    expect(await shell.run(line)).toMatch(/Killed[\s\S]*ok/)
    await alive()
    await service.call('DELETE', node)
  })

  testWith(needed, compiler)('is not what others have', async () => {
    const other = await shellOf(nodes.other)
    expect(await other.run('cat /etc/group; ls / /bin /dev/mqueue; hostname')).not.toContain('evil')
    expect(await other.run('ls /deep /m')).toMatch(/deep: No such file.*\n.*m: No such file/)
  })

  interface Setting {
    readonly name: string
    readonly settings?: object
    /** What its image has beside busybox, and says of itself. */
    readonly entries?: () => readonly TarEntry[]
    readonly says?: ImageSays
    /** The status of its making, where it is not made; or that it does not go on. */
    readonly refused?: number | true
    /** What its console shows. */
    readonly shows?: RegExp
  }
  const link_ = (name: string, link: string): TarEntry => ({ name, type: 'link', link })
  const outside = () => join(place, 'outside')
  const shown = { exec: 'echo "it"s-up' }
  const up = /its-up/
  const settings: readonly Setting[] = [
    { name: 'has a capability of the host', settings: { capabilities: ['SYS_MODULE'] }, refused: 400 },
    { name: 'has a parameter of the kernel', settings: { sysctls: 'kernel.core_pattern=|/x' }, refused: 400 },
    {
      name: 'has a parameter after a good one',
      settings: { sysctls: 'net.ipv4.ip_forward=1\nkernel.panic=1' },
      refused: 400,
    },
    { name: 'has a parameter by a path', settings: { sysctls: 'net./../kernel/hostname=evil' }, refused: 400 },
    { name: 'has a file above the root', settings: { files: [{ path: '/../escaped', text: 'x' }] }, refused: 400 },
    {
      name: 'has files by paths that lead up',
      settings: {
        files: [
          { path: '/tmp/../../../escaped', text: 'x' },
          { path: '/tmp/../../mnt/escaped', text: 'x' },
        ],
        ...shown,
      },
      shows: up,
    },
    {
      name: 'has a file at a parameter of the kernel',
      settings: { files: [{ path: '/proc/sys/kernel/core_pattern', text: '|/x' }], ...shown },
      shows: up,
    },
    { name: 'has a file in place of a directory', settings: { files: [{ path: '/proc', text: 'x' }] }, refused: true },
    {
      name: 'has a file through a link out of the image',
      settings: {
        files: [
          { path: '/out/escaped', text: 'x' },
          { path: '/file', text: 'x' },
        ],
        ...shown,
      },
      entries: () => [link_('out', outside()), link_('file', `${outside()}/escaped-too`)],
      refused: true,
    },
    {
      name: 'has a link at its users and a file at it',
      settings: { files: [{ path: '/users', text: 'x' }], ...shown },
      entries: () => [link_('users', '../../../../../../etc/passwd')],
      shows: up,
    },
    ...(['dev', 'proc', 'sys', 'run'] as const).map((name) => ({
      name: `has a link at /${name}`,
      settings: shown,
      entries: () => [link_(name, '/mnt/layer')],
      refused: true as const,
    })),
    {
      name: 'has a link at /dev/shm',
      settings: shown,
      entries: () => [link_('dev', '../../../../dev')],
      refused: true,
    },
    { name: 'works in a directory of the holder', says: { WorkingDir: '/proc/self/fd/9' }, refused: true },
    {
      name: 'works in another root',
      says: { WorkingDir: '/proc/1/root/../../mnt/layer' },
      refused: true,
    },
    {
      name: 'has the engine as its shell',
      settings: { exec: 'run; --version', command: '/bin/busybox sh -c "sleep 1; echo \\"it\\"s-up; sleep 9"' },
      entries: () => [link_('bin/sh', '/proc/self/exe')],
      shows: up,
    },
    { name: 'has no command', settings: { command: '/nothing' }, refused: true },
    {
      name: 'has commands that want privileges',
      settings: { exec: 'tr "\\n\\t" "  " </proc/self/status' },
      shows: /NoNewPrivs: 1 Seccomp: 2 /,
    },
    {
      name: 'has quotes and escapes in its commands',
      settings: { exec: `echo 'a"b' "c'd" $(echo its-)up; touch "/escaped\u001b[31m"` },
      shows: /a"b c'd its-up/,
    },
    {
      name: 'has variables for the engine',
      settings: {
        environment:
          'LD_PRELOAD=/evil.so\nLD_LIBRARY_PATH=/\nNOTIFY_SOCKET=/mnt/x\nLISTEN_FDS=9\nLISTEN_PID=1\nPERL5OPT=-Mevil\n__proto__=x\nIFS=/',
        ...shown,
      },
      shows: up,
    },
    { name: 'has a name that is a path', settings: { name: '../../escaped', ...shown }, shows: up },
  ]

  testWith(needed, compiler).for(settings)('that $name reaches nothing else', async (row) => {
    const { settings = {}, entries, says, refused, shows } = row
    await mkdir(outside(), { recursive: true })
    const file = join(place, `${sha256(row.name).slice(0, 8)}.tar`)
    const base = { Cmd: ['/bin/sh', '-c', 'while :; do sh; done'], ...says }
    await writeImage(file, [await busyboxLayer(), ...(entries === undefined ? [] : [tarOf(entries())])], base)
    const body = JSON.stringify({ name: 'hostile', image: file, adapters: 0, ...settings })
    const made = await service.fetch(`${project}/container/nodes`, { method: 'POST', body })
    if (typeof refused === 'number') {
      expect(made.status).toBe(refused)
      return
    }
    expect(made.status).toBe(201)
    const node = `${project}/container/nodes/${((await made.json()) as { node_id: string }).node_id}`
    const before = theHost.map(host)
    const started = await service.fetch(`${node}/start`, { method: 'POST' })
    expect(started.status).toBeOneOf([200, 409])
    const stateOf = async () => (await service.call<{ status: string }>('GET', node)).status
    if (refused) await expect.poll(stateOf, { timeout: waitMs }).toBe('stopped')
    else {
      const { console } = await service.call<{ console: number }>('GET', node)
      await (await Terminal.connect(console)).expect(shows ?? /./, waitMs)
    }
    await service.call('DELETE', node)
    expect(theHost.map(host)).toEqual(before)
    expect(await readdir(outside())).toEqual([])
    expect(
      ['/', '/mnt', '/tmp', '/etc'].flatMap((it) => readdirSync(it)).filter((it) => it.startsWith('escaped')),
    ).toEqual([])
    await alive()
  })

  testWith(needed, compiler)('leaves no files when it is deleted, whatever their names', async () => {
    const layers = join(service.data, 'run/containers/nodes')
    const id = nodes.plain.split('/').at(-1) ?? ''
    expect(existsSync(join(layers, id))).toBe(true)
    await service.call('DELETE', nodes.plain)
    expect(existsSync(join(layers, id))).toBe(false)
  })
})
