import { expect, test } from 'vitest'
import { createApp } from '../../../../src/app.ts'
import { readHere } from '../../../../src/importers/readers.ts'
import type { Role } from '../../../../src/model/access/access-token.ts'
import { type Caller, callerOf, callerThroughTunnel, headersFor } from '../../../../src/model/access/caller.ts'

const asked = (via?: string) =>
  new Request('http://us/', via === undefined ? {} : { headers: { 'X-Patchbay-Via': via } })
const who = (role: Role, key = 'configured:token') => ({ name: 'anna', role, key })

test('only an administrator with credentials may upload programs, and the header of a gateway can take that right away', () => {
  expect(callerOf(who('admin'), asked(), 'r')).toMatchObject({ isDirect: true, mayExecute: true, requestId: 'r' })
  expect(callerOf(who('admin', ''), asked(), 'r')).toMatchObject({ isDirect: true, mayExecute: false, requestId: 'r' })
  expect(callerOf(who('operate'), asked(), 'r')).toMatchObject({ isDirect: true, mayExecute: false, requestId: 'r' })
  expect(callerOf(who('admin'), asked('admin'), 'r')).toMatchObject({
    isDirect: false,
    mayExecute: true,
    requestId: 'r',
  })
  expect(callerOf(who('admin'), asked('user'), 'r')).toMatchObject({
    isDirect: false,
    mayExecute: false,
    requestId: 'r',
  })
  expect(callerOf(who('operate'), asked('admin'), 'r')).toMatchObject({
    isDirect: false,
    mayExecute: false,
    requestId: 'r',
  })
  expect(callerOf(who('admin', ''), asked('admin'), 'r')).toMatchObject({
    isDirect: false,
    mayExecute: false,
    requestId: 'r',
  })
})

test('the header is trusted through a tunnel, and without it the client is a user', () => {
  expect(callerThroughTunnel(asked('admin'), 'r')).toEqual({ isDirect: false, mayExecute: true, requestId: 'r' })
  expect(callerThroughTunnel(asked('user'), 'r')).toEqual({ isDirect: false, mayExecute: false, requestId: 'r' })
  expect(callerThroughTunnel(asked(), 'r')).toEqual({ isDirect: false, mayExecute: false, requestId: 'r' })
})

test('a gateway behind a gateway reports an administrator only when the client is one at both', () => {
  expect(headersFor(callerOf(who('admin'), asked('user'), 'r'))).toEqual({
    ...{ 'x-patchbay-via': 'user', 'x-request-id': 'r', 'x-patchbay-by': 'anna' },
  })
  expect(headersFor(callerOf(who('admin'), asked('admin'), 'r'))).toEqual({
    ...{ 'x-patchbay-via': 'admin', 'x-request-id': 'r', 'x-patchbay-by': 'anna' },
  })
})

test('a handler runs on behalf of its caller, and requests of the service to itself on behalf of the same one', async () => {
  const callers: Caller[] = []
  const traced: string[] = []
  let version = async () => ({ version: '1.0.0', local: true })
  const app = createApp({
    agent: { host: { version: () => version() }, events: { open: async () => new ReadableStream() } } as never,
    version: '1.0.0',
    admission: {
      access: () => ({ hosts: new Set(['us']), allowedOrigins: new Set(), user: '', password: '', token: 'geheim' }),
    },
    jsonBytes: 1024,
    aliases: {},
    runtime: {
      async runAs(caller, answer) {
        callers.push(caller)
        return answer()
      },
      json: (body, status, headers) => new Response(body, { status, headers }),
      upgrade: () => new Response(null),
      assets: async () => undefined,
      read: readHere,
      report: () => {},
    },
    trace: ({ id, route, status }) => void traced.push(`${id} ${route} ${status}`),
  })
  const inside = new Request('http://us/v2/compute/version')
  version = async () => {
    version = async () => ({ version: '1.0.0', local: true })
    await app.answerOwnRequest(inside)
    return { version: '1.0.0', local: true }
  }
  const headers = { authorization: 'Bearer geheim' }
  expect((await app.fetch(new Request(inside, { headers }))).status).toBe(200)
  expect(callers).toMatchObject([{ isDirect: true, mayExecute: true }])
  const handedOn = new Request(inside, { headers: { 'x-request-id': 'Order-66' } })
  expect((await app.answerFromTunnel(handedOn, () => new Response(null))).status).toBe(200)
  expect(callers[1]).toMatchObject({ isDirect: false, mayExecute: false })
  // The log of the compute has the id that the gateway gave, too.
  expect(traced[1]).toBe('Order-66 /v2/compute/version 200')
})
