import { randomBytes, randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { LinkChecks } from '../../../../runtime/node/engine/link-check/link-checks.ts'
import { bootId } from '../../../../runtime/node/os/system/process-identity.ts'
import type { LinkCheck } from '../../../../src/model/link-check.ts'
import { freePort } from '../../../support/ports.ts'

const project = randomUUID()
const signal = new AbortController().signal

const checks = (addresses: readonly string[] = []) =>
  new LinkChecks({ ports: { ownerOfUdp: () => project }, addresses: () => addresses })
const check = (hosts: readonly string[], more: Partial<LinkCheck> = {}): LinkCheck => ({
  ...{ end: 'a', key: randomBytes(32).toString('hex'), ...more },
  candidates: hosts.map((host) => ({ host, port: 40_000 })),
})

test('the candidates are the addresses of interfaces that another host may reach, and those of the setting', async () => {
  const { addresses, boot_id } = await checks().candidates(project, freePort())
  expect(addresses.every((address) => isIP(address) !== 0 && !/^(127\.|::1$|fe80|169\.254)/.test(address))).toBe(true)
  expect(boot_id).toBe(bootId())
  const more = Array.from({ length: 7 }, (_, index) => `198.51.100.${index}`)
  const told = await checks(more).candidates(project, freePort())
  expect(told.addresses).toEqual([...addresses.slice(0, 1), ...more])
})

test('nothing is sent to loopback, link-local, metadata and multicast addresses, in any form', async () => {
  const ear = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void ear.close())
  await once(ear, 'listening')
  const got: unknown[] = []
  ear.on('message', (bytes) => got.push(bytes))
  const hosts = ['127.0.0.1', '::1', '::ffff:127.0.0.1', '0.0.0.0', '169.254.169.254', '::ffff:a9fe:a9fe', 'localhost']
  const all = [...hosts, '224.0.0.1', '255.255.255.255', 'fe80::1']
  const given = check(all)
  const ports = given.candidates.map((it) => ({ ...it, port: ear.address().port }))
  const { paths, tried } = await checks().run(project, freePort(), { ...given, candidates: ports }, signal)
  expect(paths).toEqual([])
  expect(tried.map(({ host, outcome }) => [host, outcome])).toEqual(all.map((host) => [host, 'failed']))
  expect(got).toEqual([])
})

test.runIf(bootId() !== undefined)('computes of one host reach each other by loopback', async () => {
  const [a, b] = [freePort(), freePort()]
  const both = { key: randomBytes(32).toString('hex'), boot_id: bootId() as string }
  const run = (end: 'a' | 'b', port: number, to: number) =>
    checks().run(project, port, { ...both, end, candidates: [{ host: '127.0.0.1', port: to }] }, signal)
  const [ofA, ofB] = await Promise.all([run('a', a, b), run('b', b, a)])
  expect([ofA.paths.length, ofB.paths.length]).toEqual([1, 1])
})

test('a port is checked once at a time, and only for the project that has reserved it', async () => {
  const port = freePort()
  const over = new AbortController()
  const running = checks()
  const first = running.run(project, port, check(['192.0.2.1']), over.signal)
  await expect(running.run(project, port, check(['192.0.2.1']), signal)).rejects.toMatchObject({ status: 409 })
  await expect(running.run(randomUUID(), port, check(['192.0.2.1']), signal)).rejects.toMatchObject({ status: 404 })
  over.abort()
  expect((await first).paths).toEqual([])
})

test('many attempts at once are refused', async () => {
  const over = new AbortController()
  const running = checks()
  const all = Array.from({ length: 32 }, () => running.run(project, freePort(), check(['192.0.2.1']), over.signal))
  await expect(running.run(project, freePort(), check(['192.0.2.1']), signal)).rejects.toMatchObject({ status: 503 })
  over.abort()
  await Promise.all(all)
})
