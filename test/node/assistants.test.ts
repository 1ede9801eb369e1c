import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, overHttp, reasonOf, speaking } from '../support/assistant.ts'
import { bundledProgram, TestService } from '../support/service.ts'

const adminToken = 'admin-of-tests-0123456789'
let service: TestService
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', token: adminToken })
})
afterAll(() => service?.close())

async function tokenOf(input: object): Promise<string> {
  const headers = { authorization: `Bearer ${adminToken}` }
  const answer = await service.fetch('/v2/tokens', { method: 'POST', headers, body: JSON.stringify(input) })
  return ((await answer.json()) as { token: string }).token
}

const named = (what: string) => `${what}-${crypto.randomUUID().slice(0, 8)}`
const file = (lab: string) => `{ lab: ${lab}, nodes: { PC1: { kind: pc }, PC2: { kind: pc } }, links: [[PC1, PC2]] }`
const at = (query = '') => `${service.url}/mcp${query}`

test('without credentials there are no tools', async () => {
  await expect(overHttp(at())).rejects.toThrow('401')
})

test('a read token sees and may call only the tools that read', async () => {
  const lab = named('lab')
  await call(await overHttp(at(), adminToken), 'apply', { file: file(lab) })
  const client = await overHttp(at(), await tokenOf({ name: 'reader', role: 'read' }))
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['labs', 'inspect', 'schema', 'validate', 'docs'])
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
  expect((await call(client, 'inspect', { lab })).said.verdict).toBe(
    '0 of 2 nodes run; 0 of 1 links pass frames; not "PC1:e0 -- PC2:e0"',
  )
  for (const tool of ['plan', 'apply', 'exec', 'start', 'packets'])
    expect(await reasonOf(client, tool, { lab, file: file(lab) })).toContain(
      `"${tool}": your token has the role read, which may not call it`,
    )
})

test('a token for some labs sees and changes no other, whatever the tool', async () => {
  const [own, other] = [named('own'), named('other')]
  const admin = await overHttp(at(), adminToken)
  await call(admin, 'apply', { file: file(other) })
  const client = await overHttp(at(), await tokenOf({ name: 'student', role: 'operate', projects: [own] }))
  expect((await call(client, 'apply', { file: file(own), start: true })).isError).toBe(false)
  expect((await call(client, 'labs')).said.data?.labs).toMatchObject([{ name: own }])
  for (const [tool, input] of [
    ['inspect', { lab: other }],
    ['apply', { file: file(other) }],
    ['start', { lab: other }],
    ['exec', { lab: other, node: 'PC1', line: 'show' }],
    ['link', { lab: other, link: 'PC1', suspend: true }],
    ['packets', { lab: other, link: 'PC1' }],
    ['snapshot', { lab: other, name: 'x' }],
    ['restore', { lab: other, snapshot: 'x' }],
    ['check', { lab: other }],
  ] as const)
    expect(await reasonOf(client, tool, input)).toMatch(/^Not done: (no-such-project|forbidden)/)
  expect((await call(admin, 'inspect', { lab: other })).said.verdict).toContain('0 of 2 nodes run')

  // A number is for who got it.
  const input = { lab: own, name: 'mine' }
  const { said } = await call(await overHttp(at('?approve=true'), adminToken), 'snapshot', input)
  const student = await overHttp(
    at('?approve=true'),
    await tokenOf({ name: 'student', role: 'operate', projects: [own] }),
  )
  const confirmed = { number: said.number, tool: 'snapshot', arguments: input }
  expect(await reasonOf(student, 'confirm', confirmed)).toContain('it was not given to you')
})

test('patchbay mcp has the same tools on standard input and output, with approval', async () => {
  const transport = (...flags: string[]) =>
    new StdioClientTransport({
      command: process.execPath,
      args: [bundledProgram(), 'mcp', '--server', service.url, ...flags],
      env: { ...(process.env as Record<string, string>), PATCHBAY_TOKEN: adminToken },
    })
  const lab = named('lab')
  const client = await speaking(transport())
  const { tools } = await client.listTools()
  expect(tools).toEqual((await (await overHttp(at(), adminToken)).listTools()).tools)
  expect((await call(client, 'apply', { file: file(lab), start: true })).said.verdict).toMatch(/^2 of 2 nodes run/)
  expect((await client.listResources()).resources.length).toBeGreaterThan(10)
  expect(await reasonOf(client, 'exec', { lab, node: 'R1', line: '' })).toContain('the lab has "PC1", "PC2"')

  const asking = await speaking(transport('--approve'))
  const { said } = await call(asking, 'stop', { lab })
  expect(said.verdict).toBe(`Nothing was changed yet. The plan: stop 2 nodes of "${lab}"`)
  await call(client, 'stop', { lab, nodes: ['PC1'] })
  const confirmed = { number: said.number, tool: 'stop', arguments: { lab } }
  expect(await reasonOf(asking, 'confirm', confirmed)).toContain('is not what it was then')
  const again = (await call(asking, 'stop', { lab })).said
  expect((await call(asking, 'confirm', { ...confirmed, number: again.number })).said.done).toEqual(['stopped: "PC2"'])
})
