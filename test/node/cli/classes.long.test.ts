import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

/** A request of the teacher. */
const call = async (service: TestService, method: string, path: string, input?: object): Promise<unknown> => {
  const headers = { authorization: 'Bearer token-of-the-test' }
  const answer = await service.fetch(path, { method, headers, ...(input && { body: JSON.stringify(input) }) })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return answer.status === 204 ? undefined : answer.json()
}

test('a class is made of a list of names, its links are renewed, its labs reset and deleted', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', token: 'token-of-the-test' })
  const teacher = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  expect((await teacher.run(['classes', 'ls'])).out).toContain('"patchbay classes create CLASS --lab LAB STUDENT..."')
  await call(service, 'POST', '/v2/projects', { name: 'routing' })
  await call(service, 'POST', '/v2/projects/routing/nodes', { name: 'PC1', node_type: 'pc' })

  const create = ['classes', 'create', 'netlab', '--lab', 'routing', '--running', '2', '--expires', '8h']
  const made = await teacher.run([...create, '--students', '-'], { input: 'Grace Hopper\n\n ada ; alan\n' })
  expect(made).toMatchObject({
    code: 0,
    err: expect.stringContaining('3 links for netlab. They cannot be shown again'),
  })
  const link = new RegExp(`^(Grace Hopper|ada|alan) +${service.url}/#/class/[\\w.~+/=-]+$`)
  const [head, ...rows] = made.out.trimEnd().split('\n')
  expect([head?.split(/ +/), rows.map((row) => link.test(row))]).toEqual([
    ['STUDENT', 'LINK'],
    [true, true, true],
  ])
  expect((await teacher.run(['classes', 'ls'])).out).toMatch(/^CLASS +STUDENTS +LINKS\nnetlab +3 +3\n$/)
  expect((await teacher.run(['classes', 'ls', 'NETLAB'])).out).toMatch(
    /^STUDENT +LAB +LINK +ENDS\nada +netlab-ada +operate, at most 2 running +\d{4}-.*\nalan .*\nGrace Hopper .*\n$/,
  )
  const student = await CommandLine.of({ server: service.url })
  const token = rows.find((row) => row.startsWith('Grace'))?.split('/#/class/')[1] ?? ''
  // Who is there already keeps the link.
  expect(await teacher.run([...create, 'ada', 'grace hopper'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('All students have links'),
  })
  expect(await student.run(['login'], { input: token })).toMatchObject({ code: 0 })
  expect((await student.run(['ls'])).out).toMatch(/^LAB .*\nnetlab-Grace Hopper [^\n]*\n$/)
  expect(await student.run(['down', 'netlab-Grace Hopper', '--delete', '--yes'])).toMatchObject({
    code: 5,
    err: expect.stringContaining(
      'This is of the class netlab: only who may change all projects can delete or rename it',
    ),
  })

  // A link that was revoked is made again only for whom it is asked.
  expect(await teacher.run(['tokens', 'rm', 'alan'])).toMatchObject({ code: 0 })
  expect((await teacher.run([...create, 'ada'])).out).toContain('All students have links')
  expect((await teacher.run(['classes', 'ls', 'netlab'])).out).toMatch(/^alan +netlab-alan +none/m)

  const again = await teacher.json<{ links: { student: string; link: string }[] }>([
    'classes',
    'links',
    'netlab',
    'ada',
  ])
  expect(again.links).toMatchObject([{ student: 'ada', link: expect.stringContaining('/#/class/') }])
  await call(service, 'POST', '/v2/projects/netlab-ada/open')
  await call(service, 'POST', '/v2/projects/netlab-ada/nodes', { name: 'PC2', node_type: 'pc' })
  expect(await teacher.run(['classes', 'reset', 'netlab', 'ada'])).toMatchObject({ code: 64 })
  expect(await teacher.run(['classes', 'reset', 'netlab', 'ada', '--yes'])).toMatchObject({
    ...{ code: 0, out: '1 of 1 lab reset\n' },
  })
  expect(await call(service, 'GET', '/v2/projects/netlab-ada/nodes')).toHaveLength(1)
  const wait = { env: { PATCHBAY_COMPLETION_WAIT: `${hangMs}ms` } }
  expect((await teacher.run(['complete', '--', 'classes', 'rm', 'n'], wait)).out).toBe('netlab\t3 students\n')
  expect(await teacher.run(['classes', 'rm', 'netlab', '-y'])).toMatchObject({ code: 0, out: '3 of 3 labs deleted\n' })
  expect(await student.run(['ls'])).toMatchObject({ code: 5 })
})

test('what is wrong with a class is said, and labs that cannot be made are listed', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', token: 'token-of-the-test' })
  const teacher = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  await call(service, 'POST', '/v2/projects', { name: 'routing' })
  await call(service, 'POST', '/v2/projects/routing/nodes', { name: 'PC1', node_type: 'pc' })
  await call(service, 'POST', '/v2/projects/routing/nodes/start')
  const wrong = [
    [['create', 'netlab', '--lab', 'routing'], 64, 'no students'],
    [['create', 'netlab', 'ada'], 64, '--lab is missing'],
    [['create', 'netlab', '--lab', 'routign', 'ada'], 1, 'did you mean routing?'],
    [['create', 'netlab', '--lab', 'routing', 'ada', '--ram', 'much'], 64, '--ram: expected a number'],
    [['create', 'netlab', '--lab', 'routing', 'ada', 'ADA'], 1, 'ADA is there twice'],
    [['create', 'netlab', '--lab', 'routing', '--students', '/none'], 3, '/none: '],
    [['links', 'netlab'], 1, 'there is no class "netlab"'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect([argv, await teacher.run(['classes', ...argv])]).toMatchObject([
      argv,
      { code, err: expect.stringContaining(message) },
    ])
  const failed = await teacher.run(['classes', 'create', 'netlab', '--lab', 'routing', 'ada'])
  expect(failed).toMatchObject({ code: 1, out: expect.stringMatching(/netlab-ada +failed +.*running/) })
  expect(failed.out).toContain('0 of 1 lab made')
})
