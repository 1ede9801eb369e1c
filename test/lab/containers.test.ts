import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, readdir, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { findLimiter } from '../../runtime/node/drivers/container/control-groups.ts'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { CommandLine } from '../support/command-line.ts'
import { requireContainers, requireControlGroups } from '../support/container-image.ts'
import { addImage, createContainer, createPair, createProject, Shell } from '../support/container-lab.ts'
import { freshDirectory } from '../support/directory.ts'
import { start, status } from '../support/lab.ts'
import { freePort } from '../support/ports.ts'
import { processesWith } from '../support/processes.ts'
import { TestService } from '../support/service.ts'
import { openSocketConsole } from '../support/socket-console.ts'
import { SshSession, sshClient, tokenWithKey } from '../support/ssh.ts'
import { Terminal } from '../support/terminal.ts'
import { testWith } from '../support/test-with.ts'

const containers = await requireContainers()

/** The control groups of a node. */
function groupsOf(id: string): string[] {
  const found = findLimiter()
  const tops = 'by' in found && found.by === 'root' ? [...new Set([found.memory, found.cpu])] : []
  return tops.flatMap((top) =>
    readdirSync(top)
      .filter((it) => it.endsWith(id))
      .map((it) => join(top, it)),
  )
}

const sshPort = freePort()

/** Types a line until it is answered so: a size reaches the terminal by a way of its own, which is no part of the session. */
async function asks(session: SshSession, line: string, answer: string): Promise<void> {
  await expect
    .poll(() => {
      session.channel.write(line)
      return session.shown
    })
    .toContain(answer)
}

describe('containers', () => {
  let service: TestService
  let project: string
  beforeAll(async () => {
    if (containers.skip) return
    service = await TestService.startForAll({ 'ssh.port': sshPort })
    await addImage(service)
    project = await createProject(service)
  })
  afterAll(() => service?.close())

  const create = (settings: object = {}) => createContainer(service, project, settings)
  const reasonOf = async (node: string) =>
    (await service.call<{ status_reason: string | null }>('GET', node)).status_reason

  testWith(containers)('reach each other over a link, which says when one of them has stopped', async () => {
    const [a, b] = await createPair(service, project)
    await start(service, a, b)
    const shell = await Shell.open(service, a)
    expect(await shell.run('ping -c 2 -i 0.1 10.0.0.2 | tail -2')).toContain('2 packets received, 0% packet loss')
    const linkOf = () => service.call<{ link: string }>('GET', `${a}/adapters/0/ports/0/nio`)
    await expect.poll(linkOf).toMatchObject({ link: 'ok' })
    await service.call('POST', `${b}/stop`)
    await expect.poll(linkOf).toMatchObject({ link: 'peer_unreachable' })
    await start(service, b)
    await expect.poll(() => shell.run('ping -c 1 -W 1 10.0.0.2 | tail -2')).toContain('1 packets received')
  })

  testWith(containers)('have their frames passed by the kernel, while nothing is to be done with them', async () => {
    const [a, b] = await createPair(service, project)
    await start(service, a, b)
    const port = `${a}/adapters/0/ports/0`
    interface Seen {
      readonly path: string
      readonly counters: { readonly in_frames: number; readonly out_frames: number }
      readonly capture: { readonly frames: number } | null
    }
    const link = () => service.call<Seen>('GET', `${port}/nio`)
    const change = (what: object) => service.call('PUT', `${port}/nio`, what)
    const shell = await Shell.open(service, a)
    const ping = () => shell.run('ping -c 3 -i 0.1 -W 1 10.0.0.2 | tail -2')
    await expect.poll(link).toMatchObject({ path: 'kernel', link: 'ok' })
    const before = await link()
    expect(await ping()).toContain('3 packets received, 0% packet loss')
    const after = await link()
    for (const way of ['in_frames', 'out_frames'] as const)
      expect(after.counters[way]).toBeGreaterThanOrEqual(before.counters[way] + 3)
    await change({ suspend: true })
    expect(await link()).toMatchObject({ path: 'relay', link: 'suspended' })
    expect(await ping()).toContain('0 packets received')
    await change({ suspend: false })
    await expect.poll(link).toMatchObject({ path: 'kernel', link: 'ok' })
    // A capture has every frame from its begin on.
    await service.call('POST', `${port}/start_capture`, { capture_file_name: 'cable.pcap' })
    expect(await link()).toMatchObject({ path: 'relay' })
    expect(await ping()).toContain('3 packets received, 0% packet loss')
    await expect.poll(async () => (await link()).capture?.frames).toBeGreaterThanOrEqual(6)
    await service.call('POST', `${port}/stop_capture`)
    await expect.poll(link).toMatchObject({ path: 'kernel' })
    await service.call('DELETE', `${port}/nio`)
    expect(await ping()).toContain('0 packets received')
  })

  testWith(containers)(
    'keep what they wrote over a restart, and have their files, variables and parameters',
    async () => {
      const node = await create({
        name: 'web 1',
        adapters: 2,
        mac_address: '02:00:00:00:aa:00',
        environment: 'GREETING=hello = you\nPATH=/bin',
        files: [{ path: '/etc/app/app.conf', text: 'first\n', mode: '0600' }],
        sysctls: 'net.ipv4.ip_forward=1',
        exec: 'echo ready > /tmp/done',
      })
      await start(service, node)
      let shell = await Shell.open(service, node)
      expect(await shell.run('hostname; echo "$GREETING"')).toBe('web-1\nhello = you')
      expect(await shell.run('cat /etc/app/app.conf; stat -c %a:%u /etc/app/app.conf')).toBe('first\n600:0')
      expect(await shell.run('cat /proc/sys/net/ipv4/ip_forward /sys/class/net/eth1/address')).toBe(
        '1\n02:00:00:00:aa:01',
      )
      await expect.poll(() => shell.run('cat /tmp/done')).toBe('ready')
      await expect(service.call('PUT', node, { adapters: 3 })).rejects.toThrow('stop it to change their number')
      await shell.run('echo kept > /root/kept; echo changed > /etc/app/app.conf')
      await service.call('POST', `${node}/reload`)
      shell = await Shell.open(service, node)
      expect(await shell.run('cat /root/kept /etc/app/app.conf')).toBe('kept\nchanged')
      // The file is written again when its text changes.
      await service.call('PUT', node, { files: [{ path: '/etc/app/app.conf', text: 'second\n' }] })
      await service.call('POST', `${node}/reload`)
      shell = await Shell.open(service, node)
      expect(await shell.run('cat /etc/app/app.conf')).toBe('second')
    },
  )

  testWith(containers)('replace and empty directories of their image', async () => {
    const node = await create()
    await start(service, node)
    let shell = await Shell.open(service, node)
    expect(await shell.run('rm -r /var && mkdir /var && ls /var; rm -r /root; rm /bin/wc; echo -n $?')).toBe('0')
    await service.call('POST', `${node}/reload`)
    shell = await Shell.open(service, node)
    expect(await shell.run('ls /var; ls -d /root /bin/wc')).toMatch(/^ls: \/root: No such.*\s+ls: \/bin\/wc: No such/)
  })

  testWith(containers)('have root that is not the user of the service, and namespaces of their own', async () => {
    const node = await create()
    await start(service, node)
    const shell = await Shell.open(service, node)
    expect(await shell.run('id -u; ps | wc -l')).toMatch(/^0\n[234]$/)
    const layer = join(service.data, 'run/containers/nodes', node.split('/').at(-1) ?? '', 'layer')
    await shell.run('echo x > /root/mine')
    expect((await stat(join(layer, 'upper/root/mine'))).uid).toBeGreaterThanOrEqual(100_000)
  })

  testWith(containers)('stop at once without a handler, and by their handler with one', async () => {
    const [deaf, polite] = [
      await create(),
      await create({
        command: `sh -c 'trap "sleep 0.2; touch /root/ended; exit" TERM; echo ready; while :; do sleep 0.1; done'`,
      }),
    ]
    await start(service, deaf, polite)
    const { console: port } = await service.call<{ console: number }>('GET', polite)
    await (await Terminal.connect(port)).expect('ready')
    const begin = performance.now()
    await service.call('POST', `${deaf}/stop`)
    // After 5 s the keeper would have killed it.
    expect(performance.now() - begin).toBeLessThan(5000)
    await service.call('POST', `${polite}/stop`)
    const upper = join(service.data, 'run/containers/nodes', polite.split('/').at(-1) ?? '', 'layer/upper')
    expect(existsSync(join(upper, 'root/ended'))).toBe(true)
  })

  testWith(containers, requireControlGroups())('have the memory and the processors that they are given', async () => {
    const node = await create({ ram: 64, cpus: 0.1 })
    const id = node.split('/').at(-1) ?? ''
    await start(service, node)
    const shell = await Shell.open(service, node)
    expect(groupsOf(id).length).toBeGreaterThan(0)
    // What needs more is ended in the container, which goes on.
    expect(await shell.run('dd if=/dev/zero of=/dev/null bs=200M count=1; echo $?')).toMatch(/Killed[\s\S]*137/)
    await shell.run('sh -c "while :; do :; done" & true')
    const stats = () =>
      groupsOf(id)
        .map((it) => join(it, 'cpu.stat'))
        .filter((it) => existsSync(it))
    await expect
      .poll(() =>
        stats()
          .map((it) => readFileSync(it, 'utf8'))
          .join(),
      )
      .toMatch(/nr_throttled [1-9]/)
    await service.call('POST', `${node}/stop`)
    expect(groupsOf(id)).toEqual([])
    await expect(service.call('PUT', node, { ram: 8 })).rejects.toThrow('at least 16 MB')
    await service.call('PUT', node, { ram: 1 << 23 })
    await expect(service.call('POST', `${node}/start`)).rejects.toThrow(/ram: this host has \d+ MB/)
  })

  testWith(containers)('have further consoles, each with a program of its own until its viewer leaves', async () => {
    const consoles = [
      { name: 'shell', exec: '/bin/sh' },
      { name: 'status', exec: "sh -c 'grep NoNewPrivs /proc/self/status; exec sleep 1234'" },
      { name: 'absent', exec: '/bin/absent' },
    ]
    const node = await create({ consoles, command: "sh -c 'while :; do sleep 1000; done'" })
    await expect(openSocketConsole(service, node, '?name=shell')).rejects.toThrow('refused')
    await start(service, node)
    // Who may only read watches the first console, whatever it names, and starts no program.
    const { token } = await service.call<{ token: string }>('POST', '/v2/tokens', { name: 'ann', role: 'read' })
    const url = `${service.url.replace('http', 'ws')}${node}/console/watch?name=status`
    const watching = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
    onTestFinished(() => watching.terminate())
    await once(watching, 'open')
    const shells = await Promise.all([1, 2].map(() => openSocketConsole(service, node, '?name=shell')))
    for (const [index, shell] of shells.entries()) {
      shell.socket.send(`tty; echo mine-$((40 + ${index}))\r`)
      await shell.expect(`mine-${40 + index}`)
      await shell.expect('/dev/pts/')
    }
    shells[0]?.socket.send('echo $(ps | grep -c [s]leep.1234) of them\r')
    await shells[0]?.expect('\r\n0 of them')
    const status = await openSocketConsole(service, node, '?name=status')
    await status.expect('NoNewPrivs:\t1')
    shells[1]?.socket.send('ps | grep -c [s]leep.1234\r')
    await shells[1]?.expect('\r\n1')
    // It ends with its viewer, and the viewer with it.
    status.socket.close()
    shells[1]?.socket.send('while ps | grep -q [s]leep.1234; do sleep 0.1; done; echo alone\r')
    await shells[1]?.expect('\r\nalone')
    shells[1]?.socket.send('exit\r')
    await shells[1]?.closed
    for (const name of ['absent', 'other', ''])
      await expect(openSocketConsole(service, node, `?name=${name}`)).rejects.toThrow('refused')
    await service.call('POST', `${node}/stop`)
    await shells[0]?.closed
    for (const wrong of [
      { name: 'A b', exec: 'sh' },
      { name: 'a', exec: ' ' },
      { name: 'a', exec: "'" },
    ])
      await expect(create({ consoles: [wrong] })).rejects.toThrow('consoles')
    await expect(create({ consoles: [...consoles, ...consoles] })).rejects.toThrow('shell is there twice')
  })

  testWith(containers)('have terminals of the size that their viewers say', async () => {
    const loop = "sh -c 'while :; do read line; stty size; done'"
    const node = await create({ consoles: [{ name: 'shell', exec: '/bin/sh' }], command: loop })
    const resize = (size: object) => service.call('POST', `${node}/console/size`, size)
    await expect(resize({ columns: 100, rows: 30 })).rejects.toThrow('start it first')
    await start(service, node)
    const first = await openSocketConsole(service, node)
    first.socket.send('\r')
    await first.expect('24 80')
    await resize({ columns: 100, rows: 30 })
    first.socket.send('\r')
    await first.expect('30 100')
    const shells = await Promise.all(
      ['a', 'b'].map((it) => openSocketConsole(service, node, `?name=shell&terminal=${it}`)),
    )
    await resize({ columns: 132, rows: 43, terminal: 'b' })
    for (const shell of shells) shell.socket.send('stty size\r')
    await shells[0]?.expect('24 80')
    await shells[1]?.expect('43 132')
    await expect(resize({ columns: 100, rows: 30, terminal: 'c' })).rejects.toThrow('there is no terminal c')
    for (const wrong of [{ columns: 0, rows: 24 }, { columns: 80, rows: 1001 }, { columns: 80 }])
      await expect(resize(wrong)).rejects.toThrow('expected')
  })

  testWith(containers)(
    'have the size of the terminal of an SSH client, also when it changes, and of a command',
    async () => {
      await service.call('POST', '/v2/projects', { name: 'sized' })
      const loop = "sh -c 'while :; do read line; stty size; done'"
      const properties = { image: 'busybox.tar', command: loop, consoles: [{ name: 'shell', exec: '/bin/sh' }] }
      const body = { name: 'C1', node_type: 'container', compute_id: 'local', properties }
      const { node_id } = await service.call<{ node_id: string }>('POST', '/v2/projects/sized/nodes', body)
      await service.call('POST', `/v2/projects/sized/nodes/${node_id}/start`)
      const { privateKey } = await tokenWithKey(service)
      for (const [user, line] of [
        ['sized/C1', '\r'],
        ['sized/C1/shell', 'stty size\r'],
      ] as const) {
        const client = await sshClient({ port: sshPort, username: user, privateKey })
        const session = await SshSession.shell(client, { cols: 111, rows: 33 })
        await asks(session, line, '33 111')
        session.channel.setWindow(44, 122, 0, 0)
        await asks(session, line, '44 122')
      }
      const commands = await CommandLine.of({ server: service.url })
      const terminal = commands.startOnTerminal('stty rows 22 columns 77; patchbay console sized/C1 --name shell')
      await terminal.shows('/ # ')
      terminal.type('until stty size | grep "^22 77"; do sleep 0.1; done; echo by it""self\r')
      await terminal.shows('by itself')
      terminal.type('exit\r')
      await terminal.ended()
      await service.call('DELETE', '/v2/projects/sized')
    },
  )

  testWith(containers)(
    'are ready when a command succeeds in them, or the health check of their image does',
    async () => {
      const command = "sh -c 'while [ ! -e /tmp/go ]; do sleep 0.1; done; touch /tmp/well; sleep 1000'"
      const node = await create({ command, exec: 'touch /tmp/go' })
      await start(service, node)
      const ready = (wanted: object) => service.call('POST', `${node}/ready`, wanted)
      await ready({ exec: 'test -e /tmp/well' })
      await expect(ready({ exec: 'exit 3', within_s: 0.1 })).rejects.toThrow(/did not succeed .* exit code is 3/)
      await expect(ready({ exec: 'sleep 1000', within_s: 0.1 })).rejects.toThrow('exit code is 137')
      // A command that is late leaves nothing behind, whatever it has started.
      await expect(ready({ exec: 'sleep 7531 | cat; true', within_s: 0.1 })).rejects.toThrow('exit code is 137')
      await expect.poll(() => processesWith('sleep 7531')).toEqual([])

      // An image says what it likes, also to terminals.
      await addImage(service, 'odd.tar', { Healthcheck: { Test: ['CMD', 'false', `\u001b[2J${'x'.repeat(999)}`] } })
      const odd = await create({ image: 'odd.tar' })
      await start(service, odd)
      const waited = service.call('POST', `${odd}/ready`, { within_s: 0.1 })
      await expect(waited).rejects.toThrow(/"false \\\\u001b\[2Jx{100,200}\.\.\. did not succeed/)

      await addImage(service, 'healthy.tar', { Healthcheck: { Test: ['CMD-SHELL', 'test -e /tmp/well'] } })
      const lab = await service.call<{ project_id: string }>('POST', '/v2/projects', { name: 'health' })
      const nodes = `/v2/projects/${lab.project_id}/nodes`
      const properties = { image: 'healthy.tar', command, exec: 'touch /tmp/go' }
      const body = { name: 'C1', node_type: 'container', compute_id: 'local', properties }
      const { node_id } = await service.call<{ node_id: string }>('POST', nodes, body)
      await service.call('POST', `${nodes}/start?wait=ready`)
      const shell = await openSocketConsole(service, `${nodes}/${node_id}`, '?name=shell')
      shell.socket.send('ls /tmp\r')
      await shell.expect('well')
      await service.call('DELETE', `/v2/projects/${lab.project_id}`)
    },
  )

  testWith(containers)('say why they do not run', async () => {
    const [keeper] = processesWith(`keeper.js ${service.data}`)
    const taps = async () => {
      const files = await readdir(`/proc/${keeper?.pid}/fd`)
      const targets = files.map((fd) => readlink(`/proc/${keeper?.pid}/fd/${fd}`).catch(() => ''))
      return (await Promise.all(targets)).filter((it) => it.endsWith('/net/tun')).length
    }
    const before = await taps()
    const missing = await create({ command: '/bin/absent' })
    await expect(service.call('POST', `${missing}/start`)).rejects.toThrow(/\/bin\/absent.*[Nn]o such file/)
    expect(await status(service, missing)).toBe('stopped')
    const short = await create({ command: "sh -c 'echo that is all; exit 3'" })
    await service.call('POST', `${short}/start`).catch(() => {})
    await expect.poll(() => reasonOf(short)).toMatch(/exit code 3[\s\S]*that is all/)
    // Nothing of it is left: an open TAP device would keep its network namespace.
    await expect.poll(taps).toBe(before)
    const odd = await create({ exec: 'nonsense' })
    await start(service, odd)
    const { console: port } = await service.call<{ console: number }>('GET', odd)
    await (await Terminal.connect(port)).expect('nonsense: exit code 127')
    const wrong = { name: 'x', image: 'busybox.tar', command: "sh 'open" }
    await expect(service.call('POST', `${project}/container/nodes`, wrong)).rejects.toThrow('the quote')
    await expect(create({ image: 'absent.tar' })).rejects.toThrow('does not exist')
    await expect(create({ capabilities: ['SYS_MODULE'] })).rejects.toThrow('capabilities')
    for (const user of ['root', '65536', '1:', '-1']) await expect(create({ user })).rejects.toThrow('number of a user')
    await expect(create({ sysctls: 'kernel.hostname=x' })).rejects.toThrow('net.ipv4.ip_forward=1')
  })

  testWith(containers)('run their command as the user, and in the directory, that they are given', async () => {
    const command = "sh -c 'pwd; id; df -m /dev/shm; echo x >/etc/group; echo end; sleep 1000'"
    const node = await create({ command, user: '1000:5', workdir: '/tmp', shm: 3 })
    await start(service, node)
    const { console: port } = await service.call<{ console: number }>('GET', node)
    const shown = await (await Terminal.connect(port)).expect('end')
    expect(shown).toMatch(/^\/tmp\r\nuid=1000\(user\) gid=5\r\n[\s\S]*shm +3 /m)
    expect(shown).toMatch(/denied/)
  })

  testWith(containers)('leave nothing behind when they are deleted', async () => {
    const node = await create()
    await start(service, node)
    const shell = await Shell.open(service, node)
    await shell.run('mkdir -m 700 /root/dir; touch /root/dir/.hidden')
    await service.call('DELETE', node)
    const nodes = join(service.data, 'run/containers/nodes')
    expect(await readdir(nodes)).not.toContain(node.split('/').at(-1))
  })
})

testWith(containers)(
  'commands in containers have their own time, and are tried again where crun fails in passing',
  async () => {
    const service = await TestService.start({}, ['/usr/bin/env', `PATH=${await hesitantCrun()}:${process.env.PATH}`])
    await addImage(service)
    const node = await createContainer(service, await createProject(service), { exec: 'touch /tmp/well' })
    await start(service, node)
    const ready = (wanted: object) => service.call('POST', `${node}/ready`, wanted)
    await ready({ exec: 'test -e /tmp/well' })
    await expect(ready({ exec: 'sleep 0.1; exit 3', within_s: 0.1 })).rejects.toThrow('exit code is 3')
    await expect(ready({ exec: 'sleep 1000', within_s: 0.1 })).rejects.toThrow('exit code is 137')
  },
)

testWith(containers)('containers go on without the service, and end with the keeper', async () => {
  const service = await TestService.start()
  await addImage(service)
  const project = await createProject(service)
  const [a, b] = await createPair(service, project)
  const id = a.split('/').at(-1) ?? ''
  const isLimited = !requireControlGroups().skip
  if (isLimited) await service.call('PUT', a, { ram: 64, cpus: 1 })
  await start(service, a, b)
  expect(groupsOf(id).length > 0).toBe(isLimited)
  const before = await Shell.open(service, a)
  await before.run('(sleep 1000 &) ; echo here > /tmp/here')
  await service.kill('SIGKILL')
  await service.restart()
  expect(await status(service, a)).toBe('started')
  const shell = await Shell.open(service, a)
  expect(await shell.run('cat /tmp/here; ping -c 1 10.0.0.2 | tail -2')).toMatch(/^here[\s\S]*1 packets received/)
  const holders = () => processesWith(`holder of ${service.data}`)
  expect(holders().length).toBeGreaterThan(0)
  const [keeper] = processesWith(`keeper.js ${service.data}`)
  process.kill(keeper?.pid ?? 0, 'SIGKILL')
  await expect.poll(() => status(service, a)).toBe('stopped')
  await expect.poll(holders).toEqual([])
  await expect.poll(() => groupsOf(id)).toEqual([])
  await start(service, a)
  expect(await (await Shell.open(service, a)).run('cat /tmp/here')).toBe('here')
})

/** A directory with a crun that takes more than a second to run further commands, and fails to run the first ones as version 1.8 may. */
async function hesitantCrun(): Promise<string> {
  const directory = await freshDirectory()
  // Root of the namespaces is another user.
  await chmod(directory, 0o755)
  const script = `#!/bin/sh
case " $* " in *" exec "*)
  sleep 1.5
  echo try >>/mnt/tries
  if [ "$(wc -l </mnt/tries)" -le 2 ]; then
    while [ "$1" != --log ]; do shift; done
    echo 'read FD: connection closed' >"$2"
    exit 1
  fi
esac
exec ${findProgram('crun')} "$@"
`
  await writeFile(join(directory, 'crun'), script, { mode: 0o755 })
  return directory
}
