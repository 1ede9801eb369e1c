import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

test('organizations are made, acted in, changed and deleted', async () => {
  const service = await TestService.start({ gateway: true, token: 'token-of-the-test' })
  const admin = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  const made = await admin.run(['organizations', 'create', 'physics', '--name', 'Physics', '--max-projects', '20'])
  expect(made).toMatchObject({ code: 0, out: expect.stringContaining('PATCHBAY_ORGANIZATION=physics') })
  expect((await admin.run(['organizations', 'ls'])).out).toMatch(
    /^ORGANIZATION +NAME +LIMITS\ndefault +default +none\nphysics +Physics +20 projects\n$/,
  )
  const wait = { env: { PATCHBAY_COMPLETION_WAIT: `${hangMs}ms` } }
  expect((await admin.run(['complete', '--', 'organizations', 'rm', 'p'], wait)).out).toBe('physics\tPhysics\n')
  const within = { env: { PATCHBAY_ORGANIZATION: 'physics' } }
  const { out } = await admin.run(['tokens', 'create', 'ada', '--role', 'admin'], within)
  expect(out).toMatch(/^pb_[0-9a-f]{16}_physics_/)
  expect((await admin.run(['tokens', 'ls'], within)).out).toContain('ada')
  expect((await admin.run(['tokens', 'ls'])).out).not.toContain('ada')
  const ada = await CommandLine.of({ server: service.url, token: out.trim() })
  expect(await ada.run(['organizations', 'ls'])).toMatchObject({ code: 5 })
  expect((await admin.run(['organizations', 'set', 'physics', '--requests-per-s', '50'])).out).toContain(
    '20 projects, 50 requests/s',
  )
  expect(await admin.run(['organizations', 'set', 'physics'])).toMatchObject({ code: 64 })
  expect(await admin.run(['organizations', 'rm', 'default'])).toMatchObject({ code: 1 })
  // Nothing is deleted when one of the names is wrong.
  expect(await admin.run(['organizations', 'rm', 'physics', 'phisics'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('there is no organization "phisics"'),
  })
  expect((await admin.run(['organizations', 'ls'])).out).toContain('physics')
  expect(await admin.run(['organizations', 'rm', 'physics'])).toMatchObject({ code: 0, out: 'Deleted physics\n' })
  expect(await ada.run(['tokens', 'ls'])).toMatchObject({ code: 5 })
})
