import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { type Pool, PortAllocator } from '../../../../runtime/node/engine/ports/allocator.ts'
import { isTcpFree, isUdpFree } from '../../../../runtime/node/engine/ports/bind-test.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { freePorts } from '../../../support/ports.ts'

const project = '11111111-1111-4111-8111-111111111111'
const other = '22222222-2222-4222-8222-222222222222'

const base = freePorts(350)

function allocator(ranges: Partial<Record<Pool, readonly [number, number]>>): PortAllocator {
  return new PortAllocator({
    ranges: { console: [base, base + 9], vnc: [base + 10, base + 19], udp: [base + 20, base + 29], ...ranges },
    consoleHost: '127.0.0.1',
  })
}

async function occupyTcp(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
}

async function occupyUdp(port: number): Promise<void> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  onTestFinished(() => void socket.close())
}

for (const [pool, range, isFree] of [
  ['udp', [base + 100, base + 299], isUdpFree],
  ['console', [base + 300, base + 349], (port: number) => isTcpFree(port, '127.0.0.1')],
] as const) {
  test(`200 allocations at once get every free ${pool} port of the range once, and the others fail`, async () => {
    const ports = allocator({ [pool]: range })
    const results = await Promise.allSettled(
      Array.from({ length: 200 }, (_, n) => ports.allocate(pool, `${project}/${n}`)),
    )
    const got = results.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []))
    expect(new Set(got).size).toBe(got.length)
    expect(ports.used(pool)).toEqual(got.sort((a, b) => a - b))
    const [first, last] = range
    for (let port = first; port <= last; port++) {
      // One that was not handed out is somebody else's on this machine.
      if (!got.includes(port)) expect(await isFree(port)).toBe(false)
    }
    expect(got.length).toBeGreaterThan((last - first) / 2)
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBe(200 - got.length)
    for (const it of refused) expect(it).toMatchObject({ reason: { status: 409 } })
    await expect(ports.allocate(pool, project)).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining(`${first} to ${last}`),
    })
  })
}

test('ports that other programs have are skipped, at any address', async () => {
  const ports = allocator({ console: [base + 40, base + 42], udp: [base + 50, base + 51] })
  await occupyTcp(base + 40, '0.0.0.0')
  await occupyTcp(base + 41, '127.0.0.2')
  expect(await ports.allocate('console', project)).toBe(base + 42)
  await occupyUdp(base + 50)
  expect(await ports.allocate('udp', project)).toBe(base + 51)
  expect(ports.used('udp')).toEqual([base + 51])
})

test('ports that browsers refuse are not used for consoles, but for links', async () => {
  const console = allocator({ console: [6665, 6669], udp: [6665, 6669] })
  await expect(console.allocate('console', project)).rejects.toMatchObject({ status: 409 })
  await expect(console.allocate('console', project, 6667)).rejects.toMatchObject({ status: 409 })
  expect(await console.allocate('udp', project, 6667)).toBe(6667)
})

test('a requested port is assigned when it is available, and else another one', async () => {
  const ports = allocator({})
  expect(await ports.allocate('console', project, base + 5)).toBe(base + 5)
  const second = await ports.allocate('console', project, base + 5)
  expect(second).not.toBe(base + 5)
  const outside = await ports.allocate('console', project, base + 100)
  expect(outside).toBeGreaterThanOrEqual(base)
  expect(outside).toBeLessThanOrEqual(base + 9)
})

test('console and VNC ports have one pool: no port is used for both', async () => {
  const ports = allocator({ console: [base + 60, base + 63], vnc: [base + 60, base + 63] })
  const got = await Promise.all(
    [1, 2].flatMap((n) => [ports.allocate('console', `${project}/${n}`), ports.allocate('vnc', `${project}/${n}`)]),
  )
  expect(new Set(got).size).toBe(4)
})

test('a released port is assigned again, except when another owner released it', async () => {
  const ports = allocator({ udp: [base + 70, base + 70] })
  const port = await ports.allocate('udp', project)
  ports.release('udp', port, other)
  await expect(ports.allocate('udp', project)).rejects.toMatchObject({ status: 409 })
  ports.release('udp', port, project)
  expect(await ports.allocate('udp', other)).toBe(port)
})

test('a link may use the port that its project reserved, or any free port', async () => {
  const ports = allocator({})
  const port = await ports.allocate('udp', project)
  ports.claimUdp(port, `${project}/pc:1/0/0`)
  expect(ports.ownerOfUdp(port)).toBe(`${project}/pc:1/0/0`)
  ports.claimUdp(port, `${project}/pc:1/0/0`)
  ports.claimUdp(5000, `${project}/pc:2/0/0`)
  expect(ports.ownerOfUdp(5000)).toBe(`${project}/pc:2/0/0`)
})

test('a link is refused the port of another link, of another project, and of one whose name begins alike', async () => {
  const ports = allocator({})
  const port = await ports.allocate('udp', project)
  for (const stranger of [`${other}/pc:1/0/0`, other, `${project}0/pc:1/0/0`]) {
    expect(() => ports.claimUdp(port, stranger)).toThrow(expect.objectContaining({ status: 409 }))
  }
  ports.claimUdp(port, `${project}/pc:1/0/0`)
  expect(() => ports.claimUdp(port, `${project}/pc:2/0/0`)).toThrow(expect.objectContaining({ status: 409 }))
  expect(() => ports.claimUdp(port, `${project}/pc:1/0/1`)).toThrow(expect.objectContaining({ status: 409 }))
  expect(ports.ownerOfUdp(port)).toBe(`${project}/pc:1/0/0`)
})

test('all ports of a project are released with it, and no others', async () => {
  const ports = allocator({})
  await ports.allocate('console', `${project}/pc:1`)
  await ports.allocate('vnc', `${project}/qemu:1`)
  await ports.allocate('udp', project)
  ports.claimUdp(5001, `${project}/pc:1/0/0`)
  const foreign = await ports.allocate('udp', other)
  const alike = await ports.allocate('console', `${project}0/pc:1`)
  ports.releaseAll(project)
  expect(ports.used('console')).toEqual([alike])
  expect(ports.used('vnc')).toEqual([])
  expect(ports.used('udp')).toEqual([foreign])
  expect(ports.ownerOfUdp(5001)).toBeUndefined()
})

test('a port that a node of ours has bound already is adopted, unless another one has it', async () => {
  const ports = allocator({})
  await occupyTcp(base + 8, '127.0.0.1')
  expect(ports.adopt('console', base + 8, `${project}/pc:1`)).toBe(true)
  expect(ports.adopt('console', base + 8, `${project}/pc:1`)).toBe(true)
  expect(ports.adopt('console', base + 8, `${other}/pc:1`)).toBe(false)
  expect(ports.used('console')).toEqual([base + 8])
})

test('a check whether a port is free leaves it free', async () => {
  expect(await isTcpFree(base + 90, '127.0.0.1')).toBe(true)
  expect(await isTcpFree(base + 90, '127.0.0.1')).toBe(true)
  expect(await isUdpFree(base + 90)).toBe(true)
  expect(await isUdpFree(base + 90)).toBe(true)
  await occupyTcp(base + 90, '::1')
  await occupyUdp(base + 90)
  expect(await isTcpFree(base + 90, '127.0.0.1')).toBe(false)
  expect(await isUdpFree(base + 90)).toBe(false)
  expect(await isTcpFree(base + 91, '203.0.113.1')).toBe(false)
})

test('the second port that a program binds is not available to others, also not to a link of the same node', async () => {
  const ports = allocator({ udp: [base + 60, base + 80] })
  const got = await Promise.all(
    Array.from({ length: 4 }, (_, n) => ports.allocateWith('udp', `${project}/pc:${n}`, [9])),
  )
  const bound = got.flatMap((port) => [port, port + 9])
  expect(new Set(bound).size).toBe(8)
  expect(ports.used('udp')).toEqual(bound.sort((a, b) => a - b))
  for (const [n, port] of got.entries()) {
    expect(() => ports.claimUdp(port + 9, `${project}/pc:${n}`)).toThrow('in use')
    expect(await ports.takeBeside('udp', `${project}/pc:${n}`, port, [9])).toBe(true)
  }
  ports.releaseAll(`${project}/pc:0`)
  expect(ports.used('udp')).toHaveLength(6)
})

test('a port is not assigned when its second port belongs to another program', async () => {
  const ports = allocator({ udp: [base + 82, base + 92] })
  await occupyUdp(base + 91)
  expect(await ports.allocateWith('udp', project, [9])).toBe(base + 83)
  await expect(ports.allocateWith('udp', project, [9])).rejects.toMatchObject({ status: 409 })
  expect(ports.used('udp')).toEqual([base + 83, base + 92])
})

test('a bound port stays with its owner, also when it is the second port of another one', () => {
  const ports = allocator({})
  expect(ports.adopt('udp', base + 20, `${project}/pc:1`, [9])).toBe(true)
  expect(ports.adopt('udp', base + 29, `${project}/pc:2`)).toBe(true)
  expect(ports.ownerOfUdp(base + 29)).toBe(`${project}/pc:2`)
  expect(ports.adopt('udp', base + 29, `${project}/pc:3`)).toBe(false)
})

test('without free file descriptors the error says so, and not that every port is in use', async () => {
  const directory = await freshDirectory()
  const source = join(import.meta.dirname, '../../../../runtime/node/engine/ports/allocator.ts')
  await build({
    ...{ entryPoints: [source], outfile: join(directory, 'allocator.mjs') },
    ...{ bundle: true, platform: 'node', format: 'esm', logLevel: 'error' },
  })
  const program = `
    import { closeSync, openSync } from 'node:fs'
    import { PortAllocator } from './allocator.mjs'
    const range = [${base + 20}, ${base + 29}]
    const ports = new PortAllocator({ ranges: { udp: range, console: range, vnc: range }, consoleHost: '127.0.0.1' })
    const tried = async (pool) => console.log(await ports.allocate(pool, 'owner').catch(({ message }) => message))
    await tried('udp')
    const taken = []
    try { for (;;) taken.push(openSync('/dev/null')) } catch {}
    console.log = ((log) => (text) => { for (const it of taken.splice(0, 5)) closeSync(it); log(text) })(console.log)
    await tried('udp')
    console.log(ports.used('udp').length)
  `
  await writeFile(join(directory, 'program.mjs'), program)
  const shell = ['-c', 'ulimit -n 60; exec "$0" program.mjs', process.execPath]
  const { stdout } = await promisify(execFile)('/bin/sh', shell, { cwd: directory })
  const [free, refused, used] = stdout.trim().split('\n')
  expect(Number(free)).toBeGreaterThanOrEqual(base + 20)
  expect(refused).toMatch(/^Port \d+ cannot be tested: this process has too many files open/)
  expect(used).toBe('1')
})
