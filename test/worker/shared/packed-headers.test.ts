import { expect, it } from 'vitest'
import type { Env } from '../../../runtime/worker/shared/env.ts'
import { ObjectTunnels } from '../../../runtime/worker/shared/object-tunnels.ts'
import { Objects } from '../../../runtime/worker/shared/objects.ts'
import {
  packedHeader,
  packedLookup,
  packHeaders,
  unpackHeaders,
} from '../../../runtime/worker/shared/packed-headers.ts'
import type { Outgoing } from '../../../src/compute/remote/transport.ts'

it('headers come out of one header as they went in', () => {
  const joint = packHeaders([
    ['Content-Type', 'application/json'],
    ['etag', '"\u00fcber"\t"x"'],
    ['__proto__', 'x'],
  ])
  expect(joint).toMatch(/^[ -~]*$/)
  expect(unpackHeaders(joint)).toEqual([
    ['content-type', 'application/json'],
    ['etag', '"\u00fcber"\t"x"'],
    ['__proto__', 'x'],
  ])
  const headers = packedLookup(joint)
  expect([headers.get('ETag'), headers.has('Content-type'), headers.get('accept')]).toEqual([
    '"\u00fcber"\t"x"',
    true,
    null,
  ])
})

const get: Outgoing = {
  ...{ method: 'GET', path: '/v2/compute/x', headers: { 'X-A': 'b' }, body: null },
  signal: new AbortController().signal,
}

/** Asks the object of a compute that answers so; the requests that it got. */
function requestsOf(answer: (request: Request) => Response) {
  const asked: Request[] = []
  const object = {
    async fetch(url: string, init: RequestInit) {
      const request = new Request(url, init)
      asked.push(request)
      return answer(request)
    },
  }
  const COMPUTES = { idFromName: (name: string) => name, get: () => object }
  const env = { COMPUTES, FLEET_KEY: 'a key of a test' } as unknown as Env
  const tunnels = new ObjectTunnels(env, new Objects(env))
  const ask = tunnels.transport({ compute_id: 'far', protocol: 'tunnel', host: '', port: 0 })
  return { asked, ask }
}

const pathsOf = (asked: readonly Request[]) => asked.map(({ url }) => new URL(url).pathname)

it('an object that answers with joint headers gets them, but with a body', async () => {
  const { asked, ask } = requestsOf(
    () => new Response('{}', { status: 201, headers: { [packedHeader]: packHeaders([['X-Of', 'compute']]) } }),
  )
  const first = await ask(get)
  expect([first.status, first.headers.get('x-of'), first.headers.get(packedHeader)]).toEqual([201, 'compute', null])
  expect(asked[0]?.headers.get('x-a')).toBe('b')
  expect((await ask(get)).headers.get('X-Of')).toBe('compute')
  expect(asked[1]?.headers.get('x-a')).toBeNull()
  expect(unpackHeaders(asked[1]?.headers.get(packedHeader) ?? '')).toEqual([['x-a', 'b']])
  await ask({ ...get, method: 'POST', headers: { 'content-length': '1' }, body: new Uint8Array(1) })
  expect(asked[2]?.headers.get('content-length')).toBe('1')
  expect(pathsOf(asked)).toEqual(['/ask/v2/compute/x', '/joint/v2/compute/x', '/ask/v2/compute/x'])
})

it('an object of an earlier version gets and gives headers for themselves, also when it comes back', async () => {
  let isEarlier = true
  const { asked, ask } = requestsOf(({ url }) => {
    if (!isEarlier) return new Response('{}', { headers: { [packedHeader]: packHeaders([]) } })
    if (!url.startsWith('http://object/ask/')) throw new Error('The object of a compute has nothing there')
    return new Response('{}', { headers: { 'X-Of': 'compute' } })
  })
  for (let time = 0; time < 2; time++) expect((await ask(get)).headers.get('x-of')).toBe('compute')
  isEarlier = false
  await ask(get)
  isEarlier = true
  await expect(ask(get)).rejects.toThrow('has nothing there')
  expect((await ask(get)).headers.get('x-of')).toBe('compute')
  expect(pathsOf(asked).map((path) => path.split('/')[1])).toEqual(['ask', 'ask', 'ask', 'joint', 'ask'])
})
