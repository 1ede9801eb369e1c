import { chmod, copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { iouChecks } from '../../../../runtime/node/drivers/iou/doctor.ts'
import { freshDirectory } from '../../../support/directory.ts'

/** Of no host: only its form counts. */
const key = '0123456789abcdef'
const settings = { iourc_path: '', license_check: true }

/** A host with these files: a loader that is a script, and a licence. */
async function hostWith({ loader, licence }: { loader?: string; licence?: string }) {
  vi.stubEnv('IOURC', '')
  onTestFinished(() => void vi.unstubAllEnvs())
  const home = await freshDirectory()
  const path = join(home, 'ld-linux.so.2')
  if (loader !== undefined) {
    await writeFile(path, `#!/bin/sh\n${loader}\n`)
    await chmod(path, 0o755)
  }
  if (licence !== undefined) await writeFile(join(home, '.iourc'), licence)
  return { loader: path, home, hostname: 'lab' }
}
const runs = 'echo "ld.so (Debian GLIBC 2.36) stable release version 2.36."'

test('a host that runs 32-bit programs and has a licence has all that IOU needs', async () => {
  const host = await hostWith({ loader: runs, licence: `[license]\nlab = ${key};\n` })
  expect(await iouChecks(settings, [], undefined, host)).toEqual([
    { name: 'IOU', status: 'ok', found: '32-bit programs run', fix: null },
    { name: 'IOU licence', status: 'ok', found: join(host.home, '.iourc'), fix: null },
  ])
})

test('without the loader of 32-bit programs no image runs, unless one is a 64-bit program', async () => {
  const host = await hostWith({})
  const images = await freshDirectory()
  const [missing] = await iouChecks(settings, ['/nowhere', images], undefined, host)
  expect(missing).toEqual({
    ...{ name: 'IOU', status: 'warning', fix: 'sudo apt-get install libc6-i386', prevents: ['iou'] },
    found: `no loader of 32-bit programs, ${host.loader}; for iou nodes with 32-bit images`,
  })
  // Any program of this host is one of 64 bits; its name is that of an image.
  await copyFile('/bin/true', join(images, 'true'))
  expect((await iouChecks(settings, [images], undefined, host))[0]).toMatchObject({ prevents: ['iou'] })
  await copyFile('/bin/true', join(images, 'x86_64_crb_linux.bin'))
  expect((await iouChecks(settings, [images], undefined, host))[0]).not.toHaveProperty('prevents')
})

test('a kernel that runs no 32-bit programs is told from a host without their loader', async () => {
  const host = await hostWith({ loader: 'echo "Syntax error" >&2; exit 2' })
  expect((await iouChecks(settings, [], undefined, host))[0]).toMatchObject({
    found: 'the kernel runs no 32-bit programs; for iou nodes with 32-bit images',
    fix: expect.stringContaining('CONFIG_IA32_EMULATION'),
    prevents: ['iou'],
  })
})

test('a licence that is missing, of another host or of a long name is a warning that prevents nothing', async () => {
  const licence = async (host: Awaited<ReturnType<typeof hostWith>>, more: Partial<typeof settings> = {}) =>
    (await iouChecks({ ...settings, ...more }, [], undefined, host))[1]
  const none = await hostWith({ loader: runs })
  expect(await licence(none)).toEqual({
    ...{ name: 'IOU licence', status: 'warning', found: 'not found; for iou nodes that have none of their own' },
    fix: 'put it into ~/.iourc, or set iou.iourc_path',
  })
  const other = await hostWith({ loader: runs, licence: `[license]\nother = ${key};\n` })
  const path = join(other.home, '.iourc')
  expect(await licence(other)).toMatchObject({
    found: 'The licence file .iourc: it has no licence for this host, lab',
    fix: `${path} needs [license], and below it: lab = KEY;`,
  })
  expect(await licence(other, { license_check: false })).toMatchObject({ status: 'ok' })
  expect(await licence(none, { iourc_path: path })).toMatchObject({ found: expect.stringContaining('no licence for') })
  expect(await licence(none, { iourc_path: '/nowhere/iourc' })).toMatchObject({
    found: expect.stringContaining('/nowhere/iourc does not exist'),
  })
  const hostname = 'a-host-with-a-long-name'
  const long = { ...(await hostWith({ loader: runs, licence: `[license]\n${hostname} = ${key};\n` })), hostname }
  expect(await licence(long)).toMatchObject({
    found: expect.stringContaining('more than 15 characters'),
    fix: expect.stringContaining('set-hostname'),
  })
})
