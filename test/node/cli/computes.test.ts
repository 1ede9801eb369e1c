import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

test('computes are added, listed and removed by their names', async () => {
  const [service, other] = await Promise.all([
    TestService.start(),
    TestService.start({ user: 'lab', password: 'secret-of-the-test' }),
  ])
  const patchbay = await CommandLine.of({ server: service.url })
  const add = ['computes', 'add', other.url, '--name', 'rack', '--user', 'lab']
  expect(await patchbay.run(add, { input: 'wrong' })).toMatchObject({ code: 1, out: '' })
  const added = await patchbay.run(add, { input: 'secret-of-the-test\n' })
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^Added rack, which is connected \(version /) })
  expect((await patchbay.run(['computes', 'ls'])).out).toMatch(
    /^COMPUTE +ID +STATE +CPU +MEMORY +VERSION\n(.*\n)*rack +[\w-]+ +ready +/,
  )
  const { computes } = await patchbay.json<{ computes: { name: string }[] }>(['computes', 'ls'])
  expect(JSON.stringify(computes)).not.toContain('secret-of-the-test')
  expect(await patchbay.run(['computes', 'rm', 'rcak'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('did you mean rack?'),
  })
  expect((await patchbay.run(['computes', 'rm', 'rack'])).out).toBe('Removed rack; the nodes there run on\n')
  expect((await patchbay.run(['computes', 'ls'])).out).not.toContain('rack')
})

test('what is no compute is told, and not registered', async () => {
  const service = await TestService.start()
  const patchbay = await CommandLine.of({ server: service.url })
  const wrong = [
    [['computes', 'add', '10.0.0.7'], 64, 'URL: expected an address such as'],
    [['computes', 'add', 'http://lab:secret@10.0.0.7'], 64, '--user'],
    [['computes', 'add', 'http://169.254.169.254'], 1, 'link-local'],
    [['computes', 'add', 'http://127.0.0.1:1', '--user', 'lab'], 64, 'expected a password on standard input'],
    [['computes', 'rm', 'local'], 1, 'local'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
})
