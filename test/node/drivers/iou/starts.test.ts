import { execFileSync } from 'node:child_process'
import { chmod, readdir, stat } from 'node:fs/promises'
import { freemem, totalmem } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkMemory } from '../../../../runtime/node/os/system/memory.ts'
import { requireGcc, standIn } from '../../../support/iou.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import { LabFeed } from '../qemu/lab-feed.ts'
import { addImage, imageName, RouterLab, sharedService } from './router-lab.ts'

const gcc = requireGcc()
const gcc32 = gcc.skip ? gcc : requireGcc(32)
const mb = 2 ** 20

test('more memory than the host has is refused, more than is free is reported', () => {
  const host = { all: 1000, free: 400 }
  expect(checkMemory(400, host)).toBe(undefined)
  expect(checkMemory(401, host)).toMatch(/^it wants 401 MB of memory, and 400 MB are free \(40 %\) on ./)
  expect(() => checkMemory(1001, host)).toThrow('ram: this host has 1000 MB, the node wants 1001 MB')
})

describeWith(gcc)('a start', () => {
  const service = sharedService()

  /** An image made of a few lines of C. */
  function compile(name: string, code: string, ...flags: string[]): void {
    const path = join(service().data, 'images/iou', name)
    execFileSync('gcc', ['-x', 'c', '-', '-o', path, ...flags], { input: `#include <stdio.h>\n${code}` })
  }

  test('checks the memory of the host', async () => {
    const lab = await RouterLab.create(service())
    const feed = await LabFeed.open(service(), lab.path)
    const router = await lab.router({ use_default_iou_values: false, ram: 1 << 20 })
    const { status, body } = await router.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('the node wants 1048576 MB')])
    expect(await readdir(router.directory)).not.toContain('NETMAP')
    // What is free is less than all, so something is between.
    const ram = Math.floor((totalmem() * 0.99) / mb)
    expect(ram).toBeGreaterThan(freemem() / mb)
    await router.update({ ram })
    await router.start()
    const warning = await feed.until(({ action }) => action === 'log.warning')
    expect(warning.event.message).toMatch(new RegExp(`^R1: it wants ${ram} MB of memory, and \\d+ MB are free`))
    await lab.remove()
  })

  test('has the memory and the NVRAM that the image has by default, and shows them', async () => {
    const lab = await RouterLab.create(service())
    const name = 'i86bi-fresh.bin'
    await addImage(service(), name)
    const router = await lab.router({ path: name })
    // Nobody has asked the image yet.
    expect(await router.view()).toMatchObject({ ram: 256, nvram: 128 })
    await router.start()
    const { application_id, ...view } = await router.view()
    expect(view).toMatchObject({ ram: 512, nvram: 64 })
    expect((await stat(router.file(`nvram_${`${application_id}`.padStart(5, '0')}`))).size).toBe(64 * 1024)
    // Now it is known for others.
    expect(await (await lab.router({ path: name })).view()).toMatchObject({ ram: 512, nvram: 64 })
    const other = await lab.router({ path: name, use_default_iou_values: false })
    expect(await other.view()).toMatchObject({ ram: 256, nvram: 128 })
    expect(await other.update({ use_default_iou_values: true })).toMatchObject({ ram: 512, nvram: 64 })
    expect(await other.update({ use_default_iou_values: false, ram: 99 })).toMatchObject({ ram: 99, nvram: 64 })
    await lab.remove()
  })

  test('with keepalives of an image that does not know them is refused, and nothing is written', async () => {
    const lab = await RouterLab.create(service())
    compile('i86bi-old.bin', 'int main(void) { puts("-n <n> x (default 64KB)"); }')
    const router = await lab.router({ path: 'i86bi-old.bin', l1_keepalives: true })
    const { status, body } = await router.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('l1_keepalives')])
    expect((await readdir(router.directory)).sort()).toEqual(['private-config.cfg', 'startup-config.cfg'])
    await lab.remove()
  })

  test('checks the image every time', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router()
    await router.start()
    await router.stop()
    const image = join(service().data, 'images/iou', imageName)
    await chmod(image, 0o644)
    const { status, body } = await router.do('start')
    await chmod(image, 0o755)
    expect([status, body.message]).toEqual([409, expect.stringContaining('chmod +x')])
    await lab.remove()
  })

  testWith(gcc32)('of an image of 32 bits works, and without its loader says what to install', async () => {
    const lab = await RouterLab.create(service())
    execFileSync('cp', [await standIn(32), join(service().data, 'images/iou/i86bi-32.bin')])
    const router = await lab.router({ path: 'i86bi-32.bin' })
    await router.start()
    await router.console()
    await router.stop()
    compile('i86bi-loaderless.bin', 'int main(void) { return 0; }', '-m32', '-Wl,--dynamic-linker=/lib/no-ld.so.2')
    await router.update({ path: 'i86bi-loaderless.bin' })
    const { status, body } = await router.do('start')
    expect(status).toBe(409)
    expect(body.message).toContain('its loader, /lib/no-ld.so.2, is missing on this host; install it (apt-get install')
    await lab.remove()
  })

  test('of an image whose library is missing names it', async () => {
    const lab = await RouterLab.create(service())
    const library = join(service().data, 'libpatchbay-gone.so.4')
    execFileSync('gcc', ['-shared', '-x', 'c', '-', '-o', library, '-Wl,-soname,libpatchbay-gone.so.4'], {
      input: 'int f(void) { return 0; }',
    })
    compile('i86bi-needy.bin', 'int f(void); int main(void) { return f(); }', '-x', 'none', library)
    const { status, body } = await (await lab.router({ path: 'i86bi-needy.bin' })).do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('libpatchbay-gone.so.4')])
    await lab.remove()
  })
})
