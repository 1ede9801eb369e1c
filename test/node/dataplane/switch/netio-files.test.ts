import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { netioDirectory } from '../../../../runtime/node/dataplane/fast/netio-directory.ts'
import { NetioSocket } from '../../../../runtime/node/dataplane/fast/netio-socket.ts'
import { ensureKeeper } from '../../../../runtime/node/keeper/client/launch.ts'
import { type Libc, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { bridgePath, iouInstance, netio } from '../../../support/iou-instance.ts'
import { killKeeper, startKeeper } from '../../../support/keeper.ts'
import { peer, udp } from '../../../support/lan.ts'
import { freePorts } from '../../../support/ports.ts'
import { python3 } from '../../../support/python.ts'
import { requireFastPath, requireRoot } from '../../../support/require.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'

const fastPath = requireFastPath()
const root = requireRoot()
const ids = { own: 832, peer: 320 }
let libc: Libc

/** Opens a socket of a bridge in a directory; it is closed with the test. */
function open(directory: string): NetioSocket {
  libc ??= loadLibc()
  const socket = NetioSocket.open(libc, directory, ids)
  onTestFinished(() => socket.close())
  return socket
}

/** A program in python that says a line when it has done its work, and waits; it ends with the test. */
async function python(script: string, ...args: string[]) {
  const child = spawn(python3, ['-c', `${script}\nprint(flush=True)\ninput()`, ...args])
  child.stdin.on('error', () => {})
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await Promise.race([once(child.stdout, 'data'), exited])
  return { child, exited }
}

const lockScript = `import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX | fcntl.LOCK_NB)`
const bindScript = `import socket, sys
bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bound.bind(sys.argv[1])
if len(sys.argv) > 2:
    bound.connect(sys.argv[2])`

describeWith(fastPath)('the files of the socket of a bridge', () => {
  test('are created in a private directory, and deleted when they are closed', async () => {
    const directory = join(await freshDirectory(), 'netio')
    const socket = NetioSocket.open(loadLibc(), directory, ids)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect([existsSync(`${directory}/832`), existsSync(`${directory}/832.lck`)]).toEqual([true, true])
    socket.close()
    expect([existsSync(`${directory}/832`), existsSync(`${directory}/832.lck`)]).toEqual([false, false])
    chmodSync(directory, 0o755)
    open(directory)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
  })

  test('are not created through a symbolic link, or in place of a file', async () => {
    const there = await freshDirectory()
    symlinkSync(there, join(there, 'link'))
    writeFileSync(join(there, 'file'), '')
    for (const name of ['link', 'file']) {
      expect(() => open(join(there, name))).toThrow(expect.objectContaining({ code: 'no_privilege' }))
    }
    expect(existsSync(join(there, '832'))).toBe(false)
  })

  testWith(root)('are not made in a directory of somebody else', async () => {
    const directory = join(await freshDirectory(), 'netio')
    mkdirSync(directory)
    chownSync(directory, 65_534, 65_534)
    expect(() => open(directory)).toThrow(expect.objectContaining({ code: 'no_privilege' }))
  })

  test('belong to one program: a record lock of another one is respected, and the other way round', async () => {
    const directory = await freshDirectory()
    const lock = join(directory, '832.lck')
    const holder = await python(lockScript, lock)
    expect(() => open(directory)).toThrow(expect.objectContaining({ code: 'port_taken' }))
    holder.child.stdin.end()
    await holder.exited
    open(directory)
    const late = await python(lockScript, lock)
    expect(await late.exited).toEqual([1, null])
  })

  test('of a killed program are taken over; a socket in use is not', async () => {
    const directory = await freshDirectory()
    await python(bindScript, join(directory, 'elsewhere'))
    for (const connectedTo of [[], [join(directory, 'elsewhere')]]) {
      const holder = await python(bindScript, join(directory, '832'), ...connectedTo)
      expect(() => open(directory)).toThrow(expect.objectContaining({ code: 'port_taken' }))
      expect(existsSync(join(directory, '832'))).toBe(true)
      holder.child.kill('SIGKILL')
      await holder.exited
      writeFileSync(join(directory, '832.lck'), '1\n')
      NetioSocket.open(loadLibc(), directory, ids).close()
    }
  })

  test('two keepers do not use the same instance, until the first one ends, in any way', async () => {
    const [one, two] = [await startKeeper(), await startKeeper()]
    const guest = { key: 'iou:a/0/0', netio: netio(321, 0) }
    expect(await one.client.call('port.open', guest)).toEqual({ switch_port: 0 })
    await expect(two.client.call('port.open', guest)).rejects.toMatchObject({ code: 'port_taken' })
    expect((await one.client.call('inventory', {})).ports).toMatchObject([{ key: guest.key, netio: guest.netio }])
    await killKeeper(one.client)
    expect(existsSync(bridgePath(321))).toBe(true)
    await two.client.call('port.open', guest)
    const instance = await iouInstance(321)
    const lport = freePorts(2)
    const remote = await peer(lport + 1)
    await two.client.call('nio.attach', { key: guest.key, nio: udp(lport, remote.port) })
    instance.send(0, 'to whoever has it now')
    expect(await remote.next()).toBe('to whoever has it now')
    await two.client.call('shutdown', { grace_ms: 0 })
    expect(existsSync(bridgePath(321))).toBe(false)
  })

  test('are deleted when a signal ends the keeper', async () => {
    const { client } = await ensureKeeper(await freshDirectory())
    await client.call('port.open', { key: 'iou:a/0/0', netio: netio(322, 0) })
    process.kill(client.pid, 'SIGTERM')
    await client.closed
    await expect.poll(() => existsSync(bridgePath(322))).toBe(false)
  })

  test('of an instance that has ended are removed, those of a running one are not', async () => {
    const { client } = await startKeeper()
    const tidy = () => client.call('netio.tidy', { application_id: 323 })
    const instance = join(netioDirectory(), '323')
    const files = () => [instance, `${instance}.lck`, bridgePath(323), `${bridgePath(323)}.lck`].map(existsSync)
    await tidy()
    expect(files()).toEqual([false, false, false, false])
    const locked = `${lockScript}\n${bindScript.replaceAll('sys.argv[1]', 'sys.argv[2]').replace('> 2', '> 9')}`
    const running = await python(locked, `${instance}.lck`, instance)
    // One that was killed at the same time was its bridge.
    const bridge = await python(locked, `${bridgePath(323)}.lck`, bridgePath(323))
    bridge.child.kill('SIGKILL')
    await bridge.exited
    await tidy()
    expect(files()).toEqual([true, true, false, false])
    running.child.kill('SIGKILL')
    await running.exited
    await client.call('port.open', { key: 'iou:a/0/0', netio: netio(323, 0) })
    await tidy()
    expect(files()).toEqual([false, false, true, true])
    const late = await python(bindScript, instance)
    await tidy()
    expect(files()).toEqual([true, false, true, true])
    late.child.kill('SIGKILL')
    await late.exited
    await tidy()
    await client.call('port.close', { key: 'iou:a/0/0' })
    expect(files()).toEqual([false, false, false, false])
  })
})
