import { expect, test } from 'vitest'
import { createApp } from '../../../src/app.ts'
import { type Caller, callerOf, callerThroughTunnel, viaOf } from '../../../src/auth/caller.ts'
import type { Role } from '../../../src/model/access-token.ts'

const asked = (via?: string) =>
  new Request('http://us/', via === undefined ? {} : { headers: { 'X-Patchbay-Via': via } })
const who = (role: Role, key = 'configured:token') => ({ name: 'anna', role, key })

test('only an administrator with credentials may bring programs, and the word of a gateway takes that away', () => {
  expect(callerOf(who('admin'), asked())).toEqual({ isDirect: true, mayExecute: true })
  expect(callerOf(who('admin', ''), asked())).toEqual({ isDirect: true, mayExecute: false })
  expect(callerOf(who('operate'), asked())).toEqual({ isDirect: true, mayExecute: false })
  expect(callerOf(who('admin'), asked('admin'))).toEqual({ isDirect: false, mayExecute: true })
  expect(callerOf(who('admin'), asked('user'))).toEqual({ isDirect: false, mayExecute: false })
  expect(callerOf(who('operate'), asked('admin'))).toEqual({ isDirect: false, mayExecute: false })
  expect(callerOf(who('admin', ''), asked('admin'))).toEqual({ isDirect: false, mayExecute: false })
})

test('what comes through a tunnel is believed, and an older gateway that says nothing has users only', () => {
  expect(callerThroughTunnel(asked('admin'))).toEqual({ isDirect: false, mayExecute: true })
  expect(callerThroughTunnel(asked('user'))).toEqual({ isDirect: false, mayExecute: false })
  expect(callerThroughTunnel(asked())).toEqual({ isDirect: false, mayExecute: false })
})

test('a gateway behind a gateway tells of an administrator only when both know one', () => {
  expect(viaOf(callerOf(who('admin'), asked('user')))).toBe('user')
  expect(viaOf(callerOf(who('admin'), asked('admin')))).toBe('admin')
})

test('a handler runs on behalf of its caller, and what the service asks itself runs on behalf of the same one', async () => {
  const callers: Caller[] = []
  let version = async () => ({ version: '1.0.0', local: true })
  const app = createApp({
    agent: { host: { version: () => version() }, events: { open: async () => new ReadableStream() } } as never,
    async within(caller, answer) {
      callers.push(caller)
      return answer()
    },
    version: '1.0.0',
    access: () => ({ hosts: new Set(['us']), allowedOrigins: new Set(), user: '', password: '', token: 'geheim' }),
    jsonBytes: 1024,
    aliases: {},
    json: (body, status, headers) => new Response(body, { status, headers }),
    upgrade: () => new Response(null),
    docsScript: async () => '',
    report: () => {},
  })
  const inside = new Request('http://us/v2/compute/version')
  version = async () => {
    version = async () => ({ version: '1.0.0', local: true })
    await app.inside(inside)
    return { version: '1.0.0', local: true }
  }
  const headers = { authorization: 'Bearer geheim' }
  expect((await app.fetch(new Request(inside, { headers }))).status).toBe(200)
  expect(callers).toEqual([{ isDirect: true, mayExecute: true }])
  expect((await app.throughTunnel(inside, () => new Response(null))).status).toBe(200)
  expect(callers[1]).toEqual({ isDirect: false, mayExecute: false })
})
