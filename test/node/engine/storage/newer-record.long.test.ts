import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createPc, start } from '../../../support/lab.ts'
import { bundledProgram, TestService } from '../../../support/service.ts'
import { Terminal } from '../../../support/terminal.ts'

interface Shown {
  readonly status: string
  readonly status_reason: string | null
  readonly console: number
  readonly name: string
}

/** Makes a record one of a later version, with what nobody knows yet; its text then. */
async function raise(file: string): Promise<string> {
  const record = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
  const text = JSON.stringify({
    ...record,
    version: 2,
    properties: { of: 'tomorrow' },
    console: record.console,
    more: [1],
  })
  await writeFile(file, text)
  return text
}

test('a node whose record a newer version wrote is shown as such, goes on running, and is not changed', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const [runs, rests, ours] = [
    await createPc(service, project, 1),
    await createPc(service, project, 2),
    await createPc(service, project, 3),
  ]
  await start(service, runs)
  const before = await service.call<Shown>('GET', runs)
  await service.kill('SIGKILL')
  const directory = join(service.data, 'projects', project_id, '.patchbay/nodes')
  const fileOf = (node: string) => join(directory, `pc-${node.split('/').at(-1)}.json`)
  const written = [await raise(fileOf(runs)), await raise(fileOf(rests))]
  const names = (await readdir(directory)).sort()
  await service.restart()

  const reason = expect.stringContaining('written by a newer version')
  expect(await service.call<Shown>('GET', runs)).toMatchObject({
    ...{ name: before.name, console: before.console, status: 'started', status_reason: reason },
  })
  expect(await service.call<Shown>('GET', rests)).toMatchObject({ status: 'stopped', status_reason: reason })
  const terminal = await Terminal.connect(before.console)
  await terminal.expect(/PC\d> /)
  const changes: [string, string, string?][] = [
    ['PUT', rests, '{"name":"x"}'],
    ['POST', `${rests}/start`],
    ['DELETE', rests],
    ['DELETE', runs],
    ['POST', `${runs}/reload`],
    ['DELETE', project],
    ['POST', `${ours}/duplicate`, JSON.stringify({ destination_node_id: rests.split('/').at(-1) })],
  ]
  for (const [method, path, body] of changes) {
    const answer = await service.fetch(path, { method, ...(body !== undefined && { body }) })
    const { message } = (await answer.json()) as { message: string }
    expect([answer.status, message], path).toEqual([409, reason])
  }
  // It can be stopped, and another node of the project is as any other.
  await service.call('POST', `${runs}/stop`)
  expect((await service.call<Shown>('GET', runs)).status).toBe('stopped')
  await start(service, ours)
  await service.call('POST', `${project}/close`)
  expect([await readFile(fileOf(runs), 'utf8'), await readFile(fileOf(rests), 'utf8')]).toEqual(written)
  expect((await readdir(directory)).sort()).toEqual(expect.arrayContaining(names))
})

test('a project whose record a newer version wrote is not changed, and its nodes keep running', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const pc = await createPc(service, project, 1)
  await start(service, pc)
  const { console } = await service.call<Shown>('GET', pc)
  await service.kill('SIGKILL')
  const file = join(service.data, 'projects', project_id, '.patchbay/project.json')
  const [before, text] = [await readFile(file, 'utf8'), await raise(file)]
  await service.restart()
  const shown = await service.call<{ project_id: string; name: string }[]>('GET', '/v2/compute/projects?status=all')
  expect(shown).toMatchObject([{ project_id, name: 'lab' }])
  for (const [method, path, body] of [
    ['DELETE', project],
    ['GET', pc],
    ['POST', '/v2/compute/projects', JSON.stringify({ project_id, name: 'again' })],
  ] as const) {
    const answer = await service.fetch(path, { method, ...(body !== undefined && { body }) })
    const { message } = (await answer.json()) as { message: string }
    expect([answer.status, message], path).toEqual([409, expect.stringContaining('written by a newer version')])
  }
  await (await Terminal.connect(console)).expect(/PC\d> /)
  expect(await readFile(file, 'utf8')).toBe(text)
  // The version that can read it finds everything as it was.
  await service.kill('SIGKILL')
  await writeFile(file, before)
  await service.restart()
  expect(await service.call<Shown>('GET', pc)).toMatchObject({ status: 'started', console })
})

test('a service does not start with tokens of a newer version, and does not change them', async () => {
  const service = await TestService.start()
  await service.end()
  const file = join(service.data, 'tokens.json')
  const text = JSON.stringify({ version: 2, tokens: { of: 'tomorrow' } })
  await writeFile(file, text)
  const flags = ['serve', '--port', '0', '--data', service.data]
  const child = spawn(process.execPath, [bundledProgram(), ...flags], {
    env: { ...process.env, PATCHBAY_TOKEN: 'x'.repeat(40) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (bytes: Buffer) => {
    said += bytes
  })
  expect((await once(child, 'exit'))[0]).toBe(1)
  expect(said).toContain('written by a newer version')
  expect(said).not.toContain('    at ')
  expect(await readFile(file, 'utf8')).toBe(text)
  await writeFile(file, '{}')
})
