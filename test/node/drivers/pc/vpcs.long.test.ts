import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { compareVersions, findVpcs } from '../../../../runtime/node/drivers/pc/vpcs.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const vpcs = requireProgram('vpcs')

test('versions are in the order in which they were published', () => {
  const order = ['0.4b2', '0.5b1', '0.5b2', '0.6', '0.6.1', '0.8b', '0.8c', '0.8.3']
  expect([...order].reverse().sort(compareVersions)).toEqual(order)
  expect(compareVersions('0.8.3', '0.8b')).toBeGreaterThan(0)
})

// Only one version can be installed here, so the others are played by a program that prints what they print.
test.for([
  ['0.5b2', { version: '0.5b2', hasRelaySwitch: false, isPreferred: false, nameBytes: 6 }],
  ['0.6.1', { version: '0.6.1', hasRelaySwitch: false, isPreferred: true, nameBytes: 6 }],
  ['0.8.3', { version: '0.8.3', hasRelaySwitch: true, isPreferred: true, nameBytes: 12 }],
  ['0.4b2', undefined],
] as const)('version %s is recognised by its output', async ([version, expected]) => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-vpcs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const program = join(directory, 'vpcs')
  await writeFile(program, `#!/bin/sh\necho 'Welcome to Virtual PC Simulator, version ${version}'\nexit 1\n`)
  await chmod(program, 0o755)
  const found = await findVpcs(program)
  if (expected === undefined) expect(found).toBeUndefined()
  else expect(found).toEqual({ path: program, ...expected })
})

testWith(vpcs)('the installed one is found in PATH', async () => {
  expect(await findVpcs('vpcs')).toMatchObject({
    path: expect.stringMatching(/\/vpcs$/),
    version: expect.stringMatching(/^\d/),
  })
})

test('another program is not mistaken for VPCS', async () => {
  expect(await findVpcs('/bin/true')).toBeUndefined()
  expect(await findVpcs('/nowhere/vpcs')).toBeUndefined()
})

test('one that is killed while it is asked is not taken for missing until the service ends', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-vpcs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const program = join(directory, 'vpcs')
  const said = 'Welcome to Virtual PC Simulator, version 0.8.3'
  await writeFile(program, `#!/bin/sh\nmkdir ${directory}/asked && kill -9 $$\necho '${said}'\nexit 1\n`)
  await chmod(program, 0o755)
  expect(await findVpcs(program)).toBeUndefined()
  expect(await findVpcs(program)).toMatchObject({ version: '0.8.3' })
})

test.for([
  ['0.5b2', 'embedded', /0\.5b2.*commands.*embedded/],
  ['0.8.3', 'vpcs', /^0\.8\.3, /],
] as const)('auto takes %s as %s, and the doctor says so', async ([version, engine, said]) => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-vpcs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const program = join(directory, 'vpcs')
  await writeFile(program, `#!/bin/sh\necho 'Welcome to Virtual PC Simulator, version ${version}'\nexit 1\n`)
  await chmod(program, 0o755)
  const service = await TestService.start({ 'pc.engine': 'auto', 'pc.vpcs_path': program })
  expect(await service.call('GET', '/v2/compute/capabilities')).toMatchObject({ pc_engine: engine })
  const { checks } = await service.call<{ checks: { name: string; found: string }[] }>('GET', '/v2/compute/doctor')
  expect(checks.find(({ name }) => name === 'VPCS')?.found).toMatch(said)
})
