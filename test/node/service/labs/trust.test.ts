import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import type { ErrorBody } from '../../../../src/model/schema/fields.ts'
import { CommandLine } from '../../../support/command-line.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { TestService } from '../../../support/service.ts'
import { type ZipMember, zipOf } from '../../../support/zip.ts'

const projects = '/v2/projects'
const exec = "-incoming 'exec:touch /tmp/x'"
/** The same, of another file: what was trusted once is not asked about again. */
const otherExec = () => `-incoming 'exec:touch /tmp/${randomUUID()}'`

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

const freshName = () => `l${randomUUID().slice(0, 8)}`

/** A lab file with one node. */
const labFile = (name: string, node: Record<string, unknown>, checks: readonly unknown[] = []) =>
  JSON.stringify({ lab: name, nodes: { R1: node }, checks })

const apply = (name: string, document: string, more: Record<string, unknown> = {}, headers = {}) =>
  service.fetch(`${projects}/${name}/topology`, {
    method: 'PUT',
    body: JSON.stringify({ document, ...more }),
    headers: { 'content-type': 'application/json', ...headers },
  })

async function refusal(answer: Response): Promise<NonNullable<ErrorBody['untrusted']>> {
  const { untrusted = [], ...fault } = (await answer.json()) as ErrorBody
  expect([answer.status, answer.headers.get('x-patchbay-error')], fault.message).toEqual([403, 'not-trusted'])
  return untrusted
}

const names = async () => (await service.call<LabProject[]>('GET', projects)).map(({ name }) => name)

describe('a lab file in local mode', () => {
  const machine = { kind: 'machine-emulator', platform: 'x86_64' }
  it.each([
    ['options that run a program', { ...machine, options: exec }, 'options', '-incoming exec:touch /tmp/x'],
    ['options that are not known', { ...machine, options: '-newest thing' }, 'options', '-newest thing'],
    ['a quote without an end', { ...machine, options: "-vga 'std" }, 'options', "-vga 'std"],
    ['an emulator of the author', { ...machine, qemu_path: '/tmp/qemu-system-x86_64' }, 'qemu_path'],
    ['a disk of the host', { ...machine, image: '/etc/shadow' }, 'hda_disk_image', '/etc/shadow'],
    ['a CD of the host', { ...machine, cdrom_image: '/etc/shadow' }, 'cdrom_image', '/etc/shadow'],
    ['an initial RAM disk in two files', { ...machine, initrd: 'x,/etc/shadow' }, 'initrd', 'x,/etc/shadow'],
    ['a program as an IOU image', { kind: 'iou', image: '/tmp/program' }, 'path', '/tmp/program'],
    ['a file of the host as an IOS image', { kind: 'dynamips', platform: 'c7200', image: '/tmp/f' }, 'image', '/tmp/f'],
    ['a command of VPCS', { kind: 'pc', config: { text: 'ip 10.0.0.1/24\n  !touch /tmp/x\n' } }, 'startup_script'],
    ['the name as a command', { kind: 'pc', config: { text: '%h' } }, 'startup_script', '%h'],
    ['another script', { kind: 'pc', config: { text: 'LO other' } }, 'startup_script', 'LO other'],
    ['a connection to the host', { kind: 'pc', config: { text: 'rlogin 127.0.0.1 22' } }, 'startup_script'],
    [
      'a line that is typed until the node is ready',
      { kind: 'pc', ready: { console: '>', press: '!id\r' } },
      'ready.press',
      '!id',
    ],
  ] satisfies [string, Record<string, unknown>, string, string?][])(
    'with %s is refused, and nothing is made',
    async (_, node, setting, value?: string) => {
      const name = freshName()
      const untrusted = await refusal(await apply(name, labFile(name, node)))
      expect(untrusted).toEqual([{ name: 'R1', setting, value: value ?? expect.any(String) }])
      expect(await names()).not.toContain(name)
    },
  )

  it('is refused for a line that a check types on a pc, also when only the checks are run', async () => {
    const name = freshName()
    const check = { not: { on: 'R1', type: '!id', expect: 'root' } }
    expect(await refusal(await apply(name, labFile(name, { kind: 'pc' }, [check])))).toEqual([
      { name: 'R1', setting: 'type', value: '!id' },
    ])
    expect((await apply(name, labFile(name, { kind: 'pc' }))).status).toBe(202)
    const run = (query = '') =>
      service.fetch(`${projects}/${name}/checks${query}`, {
        method: 'POST',
        body: JSON.stringify({ document: labFile(name, { kind: 'pc' }, [check]) }),
      })
    await refusal(await run())
    expect((await run('?trust=true')).status).toBe(201)
  })

  it('with usual options, names of images and scripts needs no trust', async () => {
    const text = 'set pcname %h\nip 10.0.0.1/24 10.0.0.254\nsave\necho ! done'
    for (const node of [
      { kind: 'pc', config: { text } },
      {
        ...machine,
        image: 'none.img',
        options: '-vga none -machine graphics=off',
        qemu_path: '/usr/bin/qemu-system-x86_64',
      },
    ]) {
      const name = freshName()
      const answer = await apply(name, labFile(name, node))
      expect([202, 400]).toContain(answer.status)
    }
  })

  it('with an image by its path in the directory of images needs no trust', async () => {
    const directory = join(service.data, 'images/dynamips')
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, 'ios.bin'), 'IOS')
    const name = freshName()
    const answer = await apply(
      name,
      labFile(name, { kind: 'dynamips', platform: 'c7200', image: `${directory}/ios.bin` }),
    )
    expect(answer.status).not.toBe(403)
  })

  it('is taken once it is trusted, and again without a question, but not with something else', async () => {
    const name = freshName()
    const script = (line: string) => labFile(name, { kind: 'pc', config: { text: `${line} ${name}\n` } })
    await refusal(await apply(name, script('!echo')))
    expect((await apply(name, script('!echo'), { trust: true })).status).toBe(202)
    expect((await apply(`${name}-2`, script('!echo'))).status).toBe(202)
    await refusal(await apply(name, script('!rm')))
    const { digests } = JSON.parse(await readFile(join(service.data, 'trusted-files.json'), 'utf8'))
    expect(digests).toContainEqual(expect.stringMatching(/^[0-9a-f]{64}$/))
    // A plan changes nothing, and needs no trust.
    expect(
      (
        await service.fetch(`${projects}/${name}/topology?dry_run=true`, {
          method: 'PUT',
          body: JSON.stringify({ document: script('!rm') }),
        })
      ).status,
    ).toBe(200)
  })

  it('cannot be trusted by a client of a gateway', async () => {
    const name = freshName()
    const document = labFile(name, { kind: 'pc', config: { text: `!id ${name}` } })
    const { message } = (await (
      await apply(name, document, { trust: true }, { 'x-patchbay-via': 'user' })
    ).json()) as ErrorBody
    expect(message).toContain('Only a client on this host, or an administrator, can trust it')
    expect(await names()).not.toContain(name)
  })

  it('is not asked about what a client makes itself', async () => {
    const { project_id } = await service.call<LabProject>('POST', projects, { name: freshName() })
    const node = { name: 'A', node_type: 'pc', properties: { startup_script: '!id' } }
    expect(
      (await service.fetch(`${projects}/${project_id}/nodes`, { method: 'POST', body: JSON.stringify(node) })).status,
    ).toBe(201)
  })
})

/** The document of an archive with these nodes. */
function documentWith(nodes: readonly Record<string, unknown>[], more: Record<string, unknown> = {}): ZipMember {
  const all = nodes.map((node) => ({ node_id: randomUUID(), compute_id: 'local', name: 'R1', ...node }))
  const document = {
    ...{ name: 'Archive', project_id: randomUUID(), revision: 9, type: 'topology', version: '2.2.59', ...more },
    topology: { computes: [], drawings: [], links: [], nodes: all },
  }
  return { name: 'project.gns3', data: JSON.stringify(document) }
}

async function importOf(members: readonly ZipMember[], query = ''): Promise<{ id: string; answer: Response }> {
  const id = randomUUID()
  const body = new Uint8Array(zipOf(members))
  return { id, answer: await service.fetch(`${projects}/${id}/import${query}`, { method: 'POST', body }) }
}

/** A qcow2 header (version 3) with a backing file, or with its data in another file. */
function qcow2({ backing = '', hasDataFile = false }: { backing?: string; hasDataFile?: boolean }): Buffer {
  const head = Buffer.alloc(4096)
  head.write('QFI\u00fb', 'latin1')
  head.writeUInt32BE(3, 4)
  if (backing !== '') {
    head.writeBigUInt64BE(512n, 8)
    head.writeUInt32BE(backing.length, 16)
    head.write(backing, 512)
  }
  if (hasDataFile) head.writeBigUInt64BE(4n, 72)
  return head
}

describe('an archive in local mode', () => {
  const node_id = '21111111-2222-4333-8444-555555555555'
  const machine = { node_id, node_type: 'qemu', properties: { platform: 'x86_64' } }
  const directory = `project-files/qemu/${node_id}`

  it('never makes its lab open or start with the service, and says so', async () => {
    const members = [documentWith([], { auto_open: true, auto_start: true, name: freshName() })]
    const { id, answer } = await importOf(members)
    expect(answer.status).toBe(201)
    expect(await answer.json()).toMatchObject({
      ...{ auto_open: false, auto_start: false, left_out: ['auto_open', 'auto_start'] },
    })
    expect(await service.call('GET', `${projects}/${id}`)).toMatchObject({ auto_open: false, auto_start: false })
  })

  const snapshot = (nodes: readonly Record<string, unknown>[]) => ({
    name: 'snapshots/first_010126_000000.gns3project',
    data: zipOf([documentWith(nodes)]),
  })
  const disk = (name: string, data: Buffer | string): ZipMember[] => [documentWith([machine]), { name, data }]
  const elf = Buffer.from('\u007fELF\u0001\u0001\u0001 a program', 'latin1')
  it.each([
    ['options', [documentWith([{ ...machine, properties: { options: exec } }])], 'options'],
    ['options in a snapshot', [documentWith([]), snapshot([{ ...machine, properties: { options: exec } }])], 'options'],
    ['an IOU image', [documentWith([]), { name: 'images/IOU/router.bin', data: elf }], 'program'],
    ['a program in the project', [documentWith([]), { name: 'router.bin', data: elf }], 'program'],
    ['a disk on a file of the host', disk('images/QEMU/a.qcow2', qcow2({ backing: '/etc/shadow' })), 'disk'],
    ['a disk on an address', disk('images/QEMU/b.qcow2', qcow2({ backing: 'nbd:unix:socket' })), 'disk'],
    ['a disk with its data elsewhere', disk('images/QEMU/c.qcow2', qcow2({ hasDataFile: true })), 'disk'],
    ['an overlay with its data elsewhere', disk(`${directory}/hda_disk.qcow2`, qcow2({ hasDataFile: true })), 'disk'],
    [
      'a VMDK of files of the host',
      disk('images/QEMU/d.vmdk', '# Disk DescriptorFile\nversion=1\nRW 8 FLAT "/etc/shadow" 0\n'),
      'disk',
    ],
    [
      'a script of a pc',
      [
        documentWith([{ node_id, node_type: 'vpcs', properties: {} }]),
        { name: `project-files/vpcs/${node_id}/startup.vpc`, data: 'ip 10.0.0.1/24\n!touch /tmp/x\n' },
      ],
      'startup_script',
    ],
    [
      'a script of a pc that is too long to be read',
      [
        documentWith([{ node_id, node_type: 'vpcs', properties: {} }]),
        { name: `project-files/vpcs/${node_id}/startup.vpc`, data: `${'#'.repeat(70_000)}\n!id` },
      ],
      'startup_script',
    ],
  ] satisfies [string, ZipMember[], string][])(
    'with %s is refused, and leaves nothing',
    async (_, members, setting) => {
      const { id, answer } = await importOf(members)
      const untrusted = await refusal(answer)
      expect(untrusted).toEqual([expect.objectContaining({ setting })])
      expect((await service.fetch(`${projects}/${id}`)).status).toBe(404)
      for (const kind of ['iou', 'machine-emulator'])
        expect(await service.call('GET', `/v2/compute/${kind}/images`)).toEqual([])
    },
  )

  it('that is trusted is imported with all of it, and is judged again as another archive', async () => {
    const node = { ...machine, properties: { options: otherExec() } }
    const members = [documentWith([node]), { name: 'router.bin', data: elf }]
    const { id, answer } = await importOf(members, '?trust=true')
    expect(answer.status).toBe(201)
    expect((await service.fetch(`${projects}/${id}/files/router.bin`)).status).toBeLessThan(500)
    await refusal((await importOf(members)).answer)
  })

  it('with the image of IOS, which is an ELF file of another processor, needs no trust', async () => {
    const ios = Buffer.from('\u007fELF\u0001\u0002\u0001', 'latin1')
    const { answer } = await importOf([documentWith([]), { name: 'images/IOS/ios.image', data: ios }])
    expect(answer.status).toBe(201)
  })

  it('with overlays of images of another computer is imported', async () => {
    const overlay = qcow2({ backing: '/home/a/GNS3/images/QEMU/r.qcow2' })
    const { answer } = await importOf(disk(`${directory}/hda_disk.qcow2`, overlay))
    expect(answer.status).toBe(201)
  })

  it('that the service made is imported again, with the trust that its lab has', async () => {
    const name = freshName()
    const { project_id } = await service.call<LabProject>('POST', projects, { name })
    const properties = { startup_script: `ip 10.0.0.1/24\n!id ${name}\n` }
    await service.call('POST', `${projects}/${project_id}/nodes`, { name: 'A', node_type: 'pc', properties })
    await service.call('POST', `${projects}/${project_id}/close`)
    const body = await (await service.fetch(`${projects}/${project_id}/export`)).arrayBuffer()
    const again = (query = '') => service.fetch(`${projects}/${randomUUID()}/import${query}`, { method: 'POST', body })
    await refusal(await again())
    expect((await again('?trust=true')).status).toBe(201)
    // Within the service nothing is asked.
    const copy = await service.fetch(`${projects}/${project_id}/duplicate`, {
      method: 'POST',
      body: JSON.stringify({ name: `${name}-2` }),
    })
    expect(copy.status).toBe(201)
  })
})

describe('other files in local mode', () => {
  it('are refused as well: a project of GNS3 on the disk', async () => {
    const directory = await freshDirectory()
    const path = join(directory, 'campus.gns3')
    const { data = '' } = documentWith([{ node_type: 'qemu', properties: { options: otherExec() } }])
    await writeFile(path, data)
    const load = (query = '') =>
      service.fetch(`${projects}/load${query}`, { method: 'POST', body: JSON.stringify({ path }) })
    expect(await refusal(await load())).toHaveLength(1)
    expect((await load('?trust=true')).status).toBe(201)
  })

  it('are refused as well: an appliance whose template would run a program', async () => {
    const appliance = {
      ...{ name: freshName(), category: 'router', qemu: { ram: 256, arch: 'x86_64', options: otherExec() } },
      ...{ images: [], versions: [] },
    }
    const send = (query = '') =>
      service.fetch(`/v2/templates/import${query}`, {
        method: 'POST',
        body: JSON.stringify({ text: JSON.stringify(appliance) }),
      })
    expect(await refusal(await send())).toMatchObject([{ setting: 'options' }])
    const templates = await service.call<{ name: string }[]>('GET', '/v2/templates')
    expect(templates.filter(({ name }) => name.startsWith(appliance.name))).toEqual([])
    expect((await send('?trust=true')).status).toBe(201)
  })
})

describe('the commands that read files', () => {
  it('list what a file would run, without a terminal to ask on, and take --trust', async () => {
    const patchbay = await CommandLine.of({ server: service.url })
    const name = freshName()
    const document = labFile(name, { kind: 'pc', config: { text: `!id ${name}` } }, [
      { not: { on: 'R1', type: `!id ${name}`, expect: 'uid=', within: '1s' } },
    ])
    await patchbay.file('a.lab.yaml', document)
    for (const command of ['apply', 'up', 'test']) {
      const { code, err, out } = await patchbay.run([command, 'a.lab.yaml'])
      expect(code, command).toBe(3)
      expect(err + out, command).toContain(`R1: startup_script: !id ${name}`)
      expect(err + out, command).toContain('--trust')
    }
    expect(await names()).not.toContain(name)
    expect(await patchbay.run(['test', 'a.lab.yaml', '--trust'])).toMatchObject({ code: 0 })
    expect(await patchbay.run(['up', 'a.lab.yaml', '--trust'])).toMatchObject({ code: 0 })
  })

  it('import an archive with --trust only, and say what was left out', async () => {
    const patchbay = await CommandLine.of({ server: service.url })
    const machine = {
      node_type: 'qemu',
      properties: { platform: 'x86_64', options: `-drive file=/tmp/${freshName()}` },
    }
    const archive = zipOf([documentWith([machine], { auto_start: true, name: freshName() })])
    await writeFile(join(patchbay.home, 'a.gns3project'), archive)
    expect(await patchbay.run(['import', 'a.gns3project'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('R1: options: -drive file=/tmp/'),
    })
    expect(await patchbay.run(['import', 'a.gns3project', '--trust'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('Left out: auto_start'),
    })
  })
})
