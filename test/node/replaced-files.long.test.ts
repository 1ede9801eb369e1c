import { copyFile, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { freshDirectory } from '../support/directory.ts'
import { bundledProgram, TestService } from '../support/service.ts'

/** A service whose program is in a directory of its own, without the native library koffi. */
async function serviceApart(): Promise<{ directory: string; service: TestService }> {
  const directory = await freshDirectory()
  const bundle = dirname(bundledProgram())
  for (const name of await readdir(bundle))
    if (/\.js(on)?$/.test(name)) await copyFile(join(bundle, name), join(directory, name))
  return { directory, service: await TestService.startProgram(join(directory, 'patchbay.js')) }
}

test('a service whose program files were replaced says that it has to be restarted, and uses the loaded parts', async () => {
  const { directory, service } = await serviceApart()
  for (const name of await readdir(directory)) if (name.startsWith('doctor-of-service')) await rm(join(directory, name))
  const answer = await fetch(`${service.url}/v2/compute/doctor`)
  expect(answer.status).toBe(503)
  expect(await answer.json()).toEqual({
    message: 'The files of the program were replaced: restart the service',
    status: 503,
  })
  expect((await fetch(`${service.url}/v2/projects`)).status).toBe(200)
  expect(service.isRunning).toBe(true)
})

test('without koffi the doctor says so, and which functions need it', async () => {
  const { service } = await serviceApart()
  const { checks } = await service.call<{ checks: { name: string; status: string }[] }>('GET', '/v2/compute/doctor')
  expect(checks).toContainEqual(expect.objectContaining({ name: 'FFI', status: 'warning' }))
  expect(checks).toContainEqual(expect.objectContaining({ name: 'libpcap', status: 'warning' }))
})
