import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DynamipsNode } from '../../../../src/model/kinds/dynamips.ts'
import { idling, ring } from '../../../stand-in/mips/programs.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { dynamipsIn, hex, niceDynamips } from '../../../support/dynamips.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'

const needsDynamips = requireProgram('dynamips')
const image = 'router.image'
const question = { platform: 'c7200', image, ram: 64 }
/** With this one it costs nothing to have it run. */
const idlepc = hex(ring[3] ?? 0)

async function start(program: string | undefined, launcher: readonly string[] = []): Promise<TestService> {
  const service = await TestService.start(program === undefined ? {} : { 'dynamips.path': program }, launcher)
  await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
  await writeFile(join(service.data, 'images/dynamips', image), idling)
  return service
}

async function newRouter(service: TestService): Promise<string> {
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: 'lab' })
  const nodes = `/v2/compute/projects/${project_id}/dynamips/nodes`
  const { node_id } = await service.call('POST', nodes, { name: 'R1', ...question, idlepc, console_type: 'none' })
  return `${nodes}/${node_id}`
}

describeWith(needsDynamips)('a service', () => {
  /** Asks for the idle PC of the image; resolves when that runs. */
  async function ask(service: TestService, signal?: AbortSignal): Promise<void> {
    const asked = service.fetch('/v2/computes/local/auto_idlepc', {
      ...{ method: 'POST', body: JSON.stringify(question) },
      ...(signal !== undefined && { signal }),
    })
    asked.catch(() => {})
    await expect.poll(() => dynamipsIn(service.data)).toHaveLength(1)
  }

  test('leaves no measurement of an idle PC, after the client disconnected or the service was killed', async () => {
    const service = await start(await niceDynamips(await freshDirectory()))
    const projects = () => service.call<unknown[]>('GET', '/v2/compute/projects')

    const client = new AbortController()
    await ask(service, client.signal)
    expect(await projects()).toHaveLength(1)
    client.abort()
    await expect.poll(projects).toEqual([])
    expect(dynamipsIn(service.data)).toEqual([])

    await ask(service)
    await service.kill('SIGKILL')
    expect(dynamipsIn(service.data)).toHaveLength(1)
    await service.restart()
    expect(await projects()).toEqual([])
    expect(dynamipsIn(service.data)).toEqual([])
    expect(await readdir(join(service.data, 'projects'))).toEqual([])
  })

  test('after a killed one adopts its routers, except those that were started for a measurement', async () => {
    const service = await start(await niceDynamips(await freshDirectory()))
    const view = (path: string) => service.call<DynamipsNode>('GET', path)
    const [router, measured] = [await newRouter(service), await newRouter(service)]
    await service.call('POST', `${router}/start`)
    const before = await view(router)
    const [pid] = dynamipsIn(service.data)
    service.fetch(`${measured}/auto_idlepc`).catch(() => {})
    await expect.poll(async () => (await view(measured)).status).toBe('started')

    await service.kill('SIGKILL')
    expect(dynamipsIn(service.data)).toHaveLength(2)
    await service.restart()

    expect(await view(measured)).toMatchObject({ status: 'stopped', status_reason: null })
    expect(dynamipsIn(service.data)).toEqual([pid])
    expect(await view(router)).toEqual(before)
    expect((await service.call<{ console_ports: number[] }>('GET', '/v2/compute/network/ports')).console_ports).toEqual(
      [Number(/:(\d+)$/.exec(before.command_line)?.[1])],
    )
    await service.call('POST', `${router}/suspend`)
    expect(await view(router)).toMatchObject({ status: 'suspended' })
    await service.kill('SIGKILL')
    await service.restart()
    expect(await view(router)).toMatchObject({ status: 'suspended', status_reason: null })
    await service.call('POST', `${router}/stop`)
    expect(dynamipsIn(service.data)).toEqual([])
  })

  testWith(requireRoot(), requireProgram('setpriv'))(
    'runs dynamips where it may not have its capabilities',
    async () => {
      const service = await start(undefined, ['setpriv', '--bounding-set', '-net_admin,-net_raw', '--'])
      const router = await newRouter(service)
      expect(await service.call('POST', `${router}/start`)).toMatchObject({ status: 'started' })
    },
  )
})
