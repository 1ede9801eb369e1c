import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import {
  dhcp,
  guestAt,
  nameServer,
  natLab,
  natService,
  onHost,
  outside,
  pidOf,
  requireLibslirp,
} from '../node/drivers/nat/nat-lab.ts'
import { confinementOf, launcherOfOther, otherUid } from '../support/confined.ts'
import { freePort } from '../support/ports.ts'
import { python3 } from '../support/python.ts'
import { requireDevices, requireFastPath, requireProgram } from '../support/require.ts'
import { describeWith } from '../support/test-with.ts'

const page = 'hello from outside'
const needed = [requireLibslirp(), requireDevices(), requireFastPath(), requireProgram('curl')] as const

describeWith(...needed, requireProgram('busybox'))('a nat', () => {
  test('passes traffic while the service is killed, and is adopted by the next service', async () => {
    const server = await outside()
    const service = await natService(server)
    const lab = await natLab(service)
    const guest = await guestAt(lab)
    await service.call('POST', `${lab.nat}/start`)
    await guest.address('192.168.122.20')
    const source = server.space.start(python3, '-uc', streamer, server.four)
    if (source.stdout !== null) await once(source.stdout, 'data')
    const reader = guest.space.start(python3, '-uc', counter, server.four)
    let total = 0
    if (reader.stdout !== null) createInterface({ input: reader.stdout }).on('line', (line) => (total = Number(line)))
    const grows = async () => {
      const before = total
      await expect.poll(() => total).toBeGreaterThan(before)
    }
    await grows()
    await service.kill('SIGKILL')
    await grows()
    expect(await guest.fetch(server.four)).toBe(page)
    await service.restart()
    expect(await service.call('GET', lab.nat)).toMatchObject({ status: 'started', status_reason: null })
    await grows()
    await service.call('POST', `${lab.nat}/stop`)
    expect(await guest.fetch(server.four)).toContain('failed')
  })

  test('that crashes is shown as stopped with the reason, and can be started again', async () => {
    const server = await outside()
    const service = await natService(server)
    const lab = await natLab(service)
    const guest = await guestAt(lab)
    await service.call('POST', `${lab.nat}/start`)
    await guest.address('192.168.122.20')
    process.kill(pidOf(lab), 'SIGSEGV')
    const reason = expect.stringContaining('The program ended by itself (signal SIGSEGV)')
    await expect.poll(() => service.call('GET', lab.nat)).toMatchObject({ status: 'stopped', status_reason: reason })
    await service.call('POST', `${lab.nat}/start`)
    expect(await guest.fetch(server.four)).toBe(page)
  })

  test('without libslirp is refused with the command that installs it, which the doctor knows as well', async () => {
    const library = (await onHost('sh', '-c', 'ldconfig -p | sed -n "s/.*libslirp.so.0 .*=> //p"')).trim()
    const without = ['sh', '-c', `mount --bind /dev/null "$(readlink -f ${library})" && exec "$@"`, 'sh']
    const service = await natService(await outside(), {}, without)
    const lab = await natLab(service)
    const answer = await service.fetch(`${lab.nat}/start`, { method: 'POST' })
    const message = 'nat nodes need libslirp, which is not installed: sudo apt-get install libslirp0'
    expect([answer.status, await answer.json()]).toMatchObject([409, { message }])
    const { checks } = await service.call<{ checks: object[] }>('GET', '/v2/compute/doctor')
    expect(checks).toContainEqual({
      name: 'libslirp',
      status: 'warning',
      found: expect.stringMatching(/^cannot be loaded \(.*\); for nat nodes$/),
      fix: 'sudo apt-get install libslirp0',
      prevents: ['nat'],
    })
  })

  for (const sandbox of ['bubblewrap', 'namespaces']) {
    for (const who of ['root', 'another user']) {
      test(`has all its functions when it is confined by ${sandbox}, for ${who}`, async () => {
        const server = await outside()
        const { asked } = await nameServer(server)
        const settings = { local: false, sandbox, require_sandbox: true, allowed_interfaces: ['pbt*'], 'nat.reach': [] }
        const service = await natService(server, settings, who === 'root' ? [] : launcherOfOther)
        const port = freePort()
        const lab = await natLab(service, { port_forwards: [{ protocol: 'tcp', host_port: port, guest_port: 80 }] })
        const guest = await guestAt(lab)
        await service.call('POST', `${lab.nat}/start`)
        expect(await dhcp(guest)).toContain('ip=192.168.122.10 ')
        expect(await guest.fetch(server.four)).toBe(page)
        expect(await guest.try('busybox', 'nslookup', '-type=a', 'www.lab', '192.168.122.1')).toContain(server.four)
        expect(asked).toHaveLength(1)
        await guest.serve()
        expect(await (await fetch(`http://127.0.0.1:${port}/hello`)).text()).toBe(page)
        expect(confinementOf(pidOf(lab))).toMatchObject({
          uid: who === 'root' ? 65534 : otherUid,
          capabilities: '0000000000000000',
        })
      })
    }
  }
})

/** Sends without end to who connects. */
const streamer = `import socket, sys
server = socket.create_server((sys.argv[1], 81))
print('ready')
connection = server.accept()[0]
while True:
    connection.sendall(bytes(4096))`
/** Prints how much has come, ever again. */
const counter = `import socket, sys
connection = socket.create_connection((sys.argv[1], 81))
total = 0
while True:
    total += len(connection.recv(1 << 20))
    print(total)`
