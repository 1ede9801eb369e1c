import { expect, test } from 'vitest'
import { json } from '../../../../runtime/node/service/http/server.ts'
import { type App, createApp } from '../../../../src/app.ts'
import { readHere } from '../../../../src/importers/readers.ts'
import type { RelayedAnswer } from '../../../../src/lib/http/relayed-answer.ts'
import type { Identity } from '../../../../src/model/access/identity.ts'
import type { Trace } from '../../../../src/server/app-options.ts'
import { RateLimit } from '../../../../src/server/auth/rate-limit.ts'
import { isKeyOfToken } from '../../../../src/server/auth/tokens.ts'
import { allowOrigin } from '../../../../src/server/steps/allow-origin.ts'
import { answerErrors } from '../../../../src/server/steps/answer-errors.ts'
import { authenticate } from '../../../../src/server/steps/authenticate.ts'
import { authorize } from '../../../../src/server/steps/authorize.ts'
import { type DirectCompute, directReads } from '../../../../src/server/steps/direct-reads.ts'
import { findEndpoint } from '../../../../src/server/steps/find-endpoint.ts'
import { finishResponse } from '../../../../src/server/steps/finish-response.ts'
import { forwardToCompute } from '../../../../src/server/steps/forward-to-compute.ts'
import { limitRate } from '../../../../src/server/steps/limit-rate.ts'
import { recordRequest } from '../../../../src/server/steps/record-request.ts'
import { runHandler } from '../../../../src/server/steps/run-handler.ts'
import { translate } from '../../../../src/server/steps/translate.ts'

const id = '10000000-0000-4000-8000-000000000000'
const node = `/v2/compute/projects/${id}/pc/nodes/${id}`
const made = `pb_${'0'.repeat(16)}_${'a'.repeat(64)}`
const user: Identity = { name: 'alice', role: 'read', key: 'token:alice' }

/** A gateway whose one compute is near, and what it and the usual way were asked. */
function gateway(answer: () => RelayedAnswer, { perSecond = 0 }: { perSecond?: number } = {}) {
  const asked: string[] = []
  const traces: Trace[] = []
  const near: DirectCompute = {
    id: 'one',
    name: 'One',
    async forward({ request, path, caller: { name } }) {
      asked.push(`${name}: ${path}${new URL(request.url).search}`)
      return answer()
    },
  }
  const unused = () => {
    throw new Error('not here')
  }
  const reads = directReads((project, { projects }) => (project === id && projects === undefined ? near : undefined))
  const app: App = createApp({
    agent: ({ notes }) =>
      ({
        async forwardRequest() {
          asked.push('the usual way')
          return notes.failedAnswer?.answer ?? answer()
        },
      }) as never,
    version: '1.4.2',
    admission: {
      access: () => ({
        ...{ hosts: new Set(['localhost']), allowedOrigins: new Set<string>(), user: '', password: '', token: 'admin' },
        atHand: (token) => (token === made ? user : undefined),
        verifier: (_, token) => (token === made ? user : undefined),
      }),
      rateLimit: new RateLimit(() => ({ perSecond, burst: perSecond })),
    },
    jsonBytes: 1000,
    aliases: { vpcs: 'pc' },
    runtime: { json, upgrade: unused, assets: async () => undefined, read: readHere, report: unused },
    steps: {
      admit: [
        ...[recordRequest, finishResponse, answerErrors],
        ...[reads.find, authenticate, allowOrigin, limitRate, reads.forward],
        ...[findEndpoint, authorize],
      ],
      handle: [translate, forwardToCompute, runHandler],
    },
    trace: (entry) => void traces.push(entry),
  })
  return {
    asked,
    traces,
    ask: (path: string, headers: Record<string, string> = {}, method = 'GET') =>
      app.fetch(
        new Request(`http://localhost${path}`, { method, headers: { authorization: `Bearer ${made}`, ...headers } }),
      ),
  }
}

const found = (): RelayedAnswer => ({ status: 200, headers: { ETag: '"1"' }, content: new TextEncoder().encode('{}') })
const missing = (): RelayedAnswer => ({
  status: 404,
  headers: { 'X-Patchbay-Error': 'no-such-node' },
  content: new TextEncoder().encode('{"message":"no","status":404}'),
})

test('a GET of a token that is at hand goes to the compute at once, and is answered, counted and traced as any other', async () => {
  const { ask, asked, traces } = gateway(found)
  const direct = await ask(node, { 'x-request-id': 'mine' })
  const usual = await ask(node, { 'x-request-id': 'mine', authorization: 'Bearer admin' })
  expect(asked).toEqual([`alice: ${node}`, 'the usual way'])
  const headers = ({ headers: all }: Response) => Object.fromEntries(all)
  // The compute is named by the agent on the usual way.
  expect(headers(direct)).toEqual({ ...headers(usual), 'x-patchbay-compute': 'one' })
  expect(await direct.text()).toBe('{}')
  const [first, second] = traces.map(({ ms: _, ...entry }) => entry)
  expect(first).toEqual({ ...second, by: 'alice', credential: 'alice' })
})

test('the words of clients and the query reach the compute', async () => {
  const { ask, asked } = gateway(found)
  expect((await ask(`${node.replace('/pc/', '/vpcs/')}?view=full`)).status).toBe(200)
  expect(asked).toEqual([`alice: ${node}?view=full`])
})

test('an error of the compute takes the usual way, and the compute is not asked again', async () => {
  const { ask, asked } = gateway(missing)
  const answer = await ask(node)
  expect([answer.status, await answer.json()]).toEqual([404, { message: 'no', status: 404 }])
  expect(asked).toEqual([`alice: ${node}`, 'the usual way'])
})

test('what was counted is counted once, and above the limit nothing is asked', async () => {
  const { ask, asked, traces } = gateway(missing, { perSecond: 2 })
  expect([(await ask(node)).status, (await ask(node)).status]).toEqual([404, 404])
  asked.length = 0
  const refused = await ask(node)
  // As on the usual way, where no endpoint was looked for yet.
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-route')]).toEqual([429, '1', null])
  expect(traces.at(-1)).toMatchObject({ status: 429, route: '', credential: 'alice' })
  expect(asked).toEqual([])
})

test.for<[what: string, path: string, headers?: Record<string, string>, method?: string]>([
  ['another method', node, {}, 'HEAD'],
  ['another project', node.replaceAll(id, id.replace('1', '2'))],
  ['other credentials', node, { authorization: 'Bearer admin' }],
  ['an organization that the request names', node, { 'x-patchbay-organization': 'default' }],
])('%s takes the usual way', async ([, path, headers, method]) => {
  const { ask, asked } = gateway(found)
  expect((await ask(path, headers, method)).status).toBe(200)
  expect(asked).toEqual(['the usual way'])
})

test('pages get the same headers', async () => {
  const { ask } = gateway(found)
  const own = await ask(node, { origin: 'https://example.org' })
  expect([own.headers.get('access-control-allow-origin'), own.headers.get('vary')]).toEqual([
    'https://example.org',
    'Origin',
  ])
  const old = await ask(`/v1/projects/${id}`)
  expect(old.headers.get('access-control-allow-origin')).toBe('*')
})

test('the keys of tokens are told from others', () => {
  expect([isKeyOfToken('token:a'), isKeyOfToken('configured:token')]).toEqual([true, false])
})
