import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findImageTool, inspectImage, prepareOverlay } from '../../../../runtime/node/drivers/qemu/disks.ts'
import { ConfinedTool } from '../../../../runtime/node/engine/images/confined-tool.ts'
import type { Confinement } from '../../../../runtime/node/os/sandbox/sandbox.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { processes } from '../../../support/processes.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { confinementBy } from '../../../support/sandbox.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import { MachineLab, machineService } from '../../drivers/qemu/machine-lab.ts'
import { qemuName } from '../../drivers/qemu/qemu-process.ts'

const [root, imageTool, bwrap] = [requireRoot(), requireProgram('qemu-img'), requireProgram('bwrap')]
const qemuImg = (...args: readonly string[]) => execFileSync('qemu-img', args, { stdio: 'pipe' })

testWith(
  root,
  imageTool,
  bwrap,
  requireProgram(qemuName),
)('the disks of a confined machine are prepared in one cell, and none is left after the start', async () => {
  const programs = await mkdtemp(join(tmpdir(), 'patchbay-'))
  onTestFinished(() => rm(programs, { recursive: true, force: true }))
  const list = join(programs, 'cells')
  const script = `#!/bin/sh\nfor word; do last=$word; done\necho "$last" >>${list}\nexec ${findProgram('bwrap')} "$@"\n`
  await writeFile(join(programs, 'bwrap'), script, { mode: 0o755 })
  const settings = machineService({ local: false, sandbox: 'bubblewrap', require_sandbox: true })
  const service = await TestService.start(settings, ['env', `PATH=${programs}:${process.env.PATH}`])
  const lab = await MachineLab.create(service)
  const images = { hda_disk_image: await lab.image('a.img'), hdb_disk_image: await lab.image('b.img') }
  const machine = await lab.machine(images)
  /** The number of cells with a shell since the last call. */
  const cells = async () => {
    const words = (await readFile(list, 'utf8')).trim().split('\n')
    await writeFile(list, '')
    return words.filter((word) => word === '-s').length
  }
  await machine.must('start')
  // One for each image that is new to the service: other machines rely on what is found then.
  expect(await cells()).toBe(2)
  await machine.must('stop', 'start')
  expect(await cells()).toBe(1)
  const another = await lab.machine({ name: 'R2', ...images })
  await another.must('start')
  expect(await cells()).toBe(1)
  await expect.poll(() => processes().filter(({ args }) => args === '/bin/sh -s')).toEqual([])
  await Promise.all([machine.remove(), another.remove()])
})

for (const by of ['bubblewrap', 'namespaces'] as const) {
  describeWith(
    root,
    imageTool,
    by === 'bubblewrap' && bwrap,
  )(`the confined tool for disks: ${by}`, () => {
    async function toolOf(program = findImageTool('/nowhere/qemu')) {
      const confinement = await confinementBy(by)
      let cells = 0
      const counted: Confinement = Object.assign(Object.create(confinement) as Confinement, {
        wrap: (...args: Parameters<Confinement['wrap']>) => {
          cells++
          return confinement.wrap(...args)
        },
      })
      const [directory, images, elsewhere] = [await freshDirectory(), await freshDirectory(), await freshDirectory()]
      const tool = new ConfinedTool({ path: program, confinement: counted, directory, images: [images] })
      onTestFinished(() => tool[Symbol.dispose]())
      return { tool, directory, images, elsewhere, cells: () => cells }
    }

    /** A tool that is this script. */
    async function scripted(script: string) {
      const bin = join(await freshDirectory(), 'bin')
      await mkdir(bin)
      await chmod(dirname(bin), 0o755)
      await writeFile(join(bin, 'qemu-img'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
      return { ...(await toolOf(join(bin, 'qemu-img'))), bin }
    }

    test('ends with its service, also when that is killed', async () => {
      const programs = await mkdtemp(join(tmpdir(), 'patchbay-'))
      onTestFinished(() => rm(programs, { recursive: true, force: true }))
      await writeFile(join(programs, qemuName), `#!/bin/sh\nexec ${findProgram(qemuName)} "$@"\n`, { mode: 0o755 })
      const seconds = `${process.pid}000${by.length}`
      await writeFile(join(programs, 'qemu-img'), `#!/bin/sh\nexec sleep ${seconds}\n`, { mode: 0o755 })
      await chmod(programs, 0o755)
      const settings = machineService({ local: false, sandbox: by, require_sandbox: true })
      const service = await TestService.start(settings, ['env', `PATH=${programs}:${process.env.PATH}`])
      const lab = await MachineLab.create(service)
      const machine = await lab.machine({ hda_disk_image: await lab.image('a.img') })
      const tools = () => processes().filter(({ args }) => args.endsWith(`sleep ${seconds}`)).length
      const starting = machine.do('start').catch(() => {})
      await expect.poll(tools).toBe(1)
      await service.kill('SIGKILL')
      await starting
      await expect.poll(tools).toBe(0)
    })

    test('passes file names unchanged', async () => {
      const { tool, directory, images } = await toolOf()
      const plain = ["it's", '$(touch pwned)', '`touch pwned`', '; touch pwned #', '" "', '\\', '-n', ' é 磁盘 \u0081']
      const names = [...plain, 'a\ntouch pwned\n']
      for (const [index, name] of names.entries()) {
        const [base, path] = [join(images, `${name}.img`), join(directory, `hd${index}_disk.qcow2`)]
        qemuImg('create', '-q', '-f', 'qcow2', base, '1M')
        await prepareOverlay(tool, { path, base })
        expect(await inspectImage(tool, path, 'qcow2')).toMatchObject({ backing: base })
      }
      expect([...(await readdir(directory)), ...(await readdir(images)), ...(await readdir('/'))]).not.toContain(
        'pwned',
      )
    })

    test('moves to a new cell for a file that the first one does not show', async () => {
      const { tool, images, elsewhere, cells } = await toolOf()
      const [inside, outside] = [join(images, 'a.img'), join(elsewhere, 'b.img')]
      for (const file of [inside, outside]) qemuImg('create', '-q', '-f', 'qcow2', file, '1M')
      await chmod(elsewhere, 0o711)
      const format = { format: 'qcow2' }
      expect(await inspectImage(tool, inside)).toMatchObject(format)
      expect(await inspectImage(tool, inside)).toMatchObject(format)
      expect(cells()).toBe(1)
      for (let round = 0; round < 2; round++) {
        expect(await inspectImage(tool, outside)).toMatchObject(format)
        expect(await inspectImage(tool, inside)).toMatchObject(format)
        expect(cells()).toBe(2)
      }
    })

    test('sees only the node and the images', async () => {
      const { tool, directory, images, bin } = await scripted(
        'ls -d /proc /home /root /tmp/* /etc/* /var 2>/dev/null; exit 0',
      )
      const { error, stdout } = await tool.run(['info'], { ms: 20_000, maxBytes: 1 << 16 })
      expect(error).toBeNull()
      const allowed = [directory, images, bin, '/etc/ld.so.cache', '/etc/alternatives']
      const isAllowed = (path: string) => allowed.some((place) => path === place || `${place}/`.startsWith(`${path}/`))
      expect(
        stdout
          .trim()
          .split('\n')
          .filter((path) => !isAllowed(path)),
      ).toEqual([])
    })

    test('runs in another cell after a command that hung', async () => {
      const { tool, cells } = await scripted('[ "$1" = hang ] && exec sleep 600\necho fine')
      const limits = { ms: 300, maxBytes: 1 << 16 }
      expect((await tool.run(['hang'], limits)).error).toMatchObject({ message: 'it took longer than 300 ms' })
      expect(await tool.run(['info'], { ...limits, ms: 20_000 })).toMatchObject({ error: null, stdout: 'fine\n' })
      expect(cells()).toBe(2)
    })
  })
}
