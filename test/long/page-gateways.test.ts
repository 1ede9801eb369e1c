import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import { firstLab } from '../support/first-lab.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const browser = requireProgram('chromium')
const joinToken = 'page-test-0123456789'

/** A compute that dials a gateway. */
const joined = (url: string, token: string) =>
  TestService.start({ 'pc.engine': 'embedded', 'join.url': url, 'join.token': token })

testWith(browser)(
  'a first lab at a gateway on Node, on a compute that has joined it',
  async () => {
    const gateway = await TestService.start({ gateway: true, 'fleet.join_tokens': [joinToken] })
    const compute = await joined(gateway.url, joinToken)
    const id = (await readFile(join(compute.data, 'compute-id'), 'utf8')).trim()
    await vi.waitFor(
      async () => {
        const all = await gateway.call<Compute[]>('GET', '/v2/computes')
        expect(all.find(({ compute_id }) => compute_id === id)?.connected).toBe(true)
      },
      { timeout: hangMs },
    )
    const lab = await LabPage.open(gateway.url)
    await firstLab(lab)
    expect(lab.faults).toEqual([])
  },
  240_000,
)

testWith(browser)(
  'a first lab at the Worker, on a compute that has joined it',
  async () => {
    const gateway = await WorkerGateway.start()
    const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
    const compute = await joined(gateway.url.replace('http', 'ws'), token)
    await gateway.untilConnected((await readFile(join(compute.data, 'compute-id'), 'utf8')).trim())
    const lab = await LabPage.open(gateway.url)
    await lab.signIn(adminToken)
    await firstLab(lab)
    expect(lab.faults).toEqual([])
  },
  240_000,
)
