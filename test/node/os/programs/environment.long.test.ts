import { chmod, copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { environmentFor } from '../../../../runtime/node/os/programs/environment.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { reachBits, report } from '../../../stand-in/report/build.ts'
import { iourc, requireGcc } from '../../../support/iou.ts'
import { processesWith } from '../../../support/processes.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const gcc = requireGcc()
const root = join(import.meta.dirname, '../../../..')
const secrets = {
  PATCHBAY_JOIN_TOKEN: 'a-SECRET-join-token',
  PATCHBAY_FLEET_JOIN_TOKENS: 'a-SECRET-of-the-fleet',
  CLOUD_SECRET: 'x',
}

test('the environment of a program has the shared variables, its own, and those that are set for it', () => {
  const ours = {
    PATH: '/p',
    HOME: '/h',
    LC_TIME: 'C',
    PATCHBAY_TOKEN: 't',
    DISPLAY: ':0',
    VBOX_A: '1',
    AWS_SECRET: 's',
  }
  expect(environmentFor([], {}, ours)).toEqual({ PATH: '/p', HOME: '/h', LC_TIME: 'C' })
  expect(environmentFor(['DISPLAY', 'VBOX_*'], { PATH: '/q' }, ours)).toEqual({
    ...{ PATH: '/q', HOME: '/h', LC_TIME: 'C', DISPLAY: ':0', VBOX_A: '1' },
  })
})

test('programs are started in one place only', async () => {
  const files = (await Promise.all(['runtime', 'src'].map((place) => typescriptIn(join(root, place))))).flat()
  const starting: string[] = []
  for (const file of files) {
    const imports = (await readFile(file, 'utf8')).match(/^.*\bchild_process\b.*$/gm) ?? []
    if (imports.some((line) => !line.startsWith('import type '))) starting.push(file.slice(root.length + 1))
  }
  expect(starting).toEqual(['runtime/node/os/programs/start.ts'])
})

async function typescriptIn(place: string): Promise<string[]> {
  const names = await readdir(place, { recursive: true })
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(place, name))
}

testWith(gcc)('no program that is started learns a setting or secret of the service, the keeper included', async () => {
  const bin = await mkdtemp(join(tmpdir(), 'patchbay-environment-'))
  onTestFinished(() => rm(bin, { recursive: true, force: true }))
  const programs = ['vpcs', 'qemu-system-x86_64', 'qemu-img', 'dynamips', 'ldd', 'VBoxManage']
  for (const name of programs) {
    const real = findProgram(name) ?? '/bin/true'
    const script = `#!/bin/sh\nenv >>'${join(bin, name)}.seen'\nexec '${real}' "$@"\n`
    await writeFile(join(bin, name), script, { mode: 0o755 })
  }
  const variables = Object.entries({ ...secrets, PATH: `${bin}:${process.env.PATH}` }).map((it) => it.join('='))
  const service = await TestService.start({}, ['env', ...variables])
  const image = join(service.data, 'images/iou/i86bi-report.bin')
  await copyFile(await report(), image)
  await chmod(image, 0o700)

  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const node = async (kind: string, body: Record<string, unknown>) => {
    const path = `${project}/${kind}/nodes`
    return `${path}/${(await service.call<{ node_id: string }>('POST', path, { name: 'a', ...body })).node_id}`
  }
  const disk = { path: 'disk.qcow2', format: 'qcow2', size: 1 }
  await service.call('POST', '/v2/compute/machine-emulator/img', disk)
  const machine = await node('machine-emulator', { platform: 'x86_64', ram: 32, hda_disk_image: 'disk.qcow2' })
  const router = await node('iou', { path: 'i86bi-report.bin', iourc_content: iourc() })
  const pc = await node('pc', {})
  for (const path of [pc, router, machine]) await service.call('POST', `${path}/start`)
  await service.call('GET', '/v2/compute/doctor')
  await service.fetch('/v2/compute/hypervisor/vms')

  for (const name of programs) {
    const seen = await readFile(join(bin, `${name}.seen`), 'utf8').catch(() => '')
    expect(seen, name).toContain('PATH=')
    expect(seen, name).not.toMatch(/SECRET|PATCHBAY_/)
  }
  // To -h it said the sum of what it reached.
  const { ram } = await service.call<{ ram: number }>('GET', router)
  expect((ram - 256) & reachBits.secret).toBe(0)
  const others = processesWith(service.data).filter(({ pid }) => pid !== service.pid)
  expect(others.length).toBeGreaterThan(0)
  for (const { pid } of others) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    expect(environment, `${pid}`).not.toMatch(/SECRET|PATCHBAY_/)
  }
})
