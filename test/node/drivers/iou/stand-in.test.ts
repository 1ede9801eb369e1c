import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Duplex } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { freshDirectory } from '../../../support/directory.ts'
import { ones } from '../../../support/frames.ts'
import { freeApplicationId, IouConsole, iourc, netioDirectory, requireGcc, standIn } from '../../../support/iou.ts'
import { hangMs } from '../../../support/limits.ts'
import { python3 } from '../../../support/python.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'

const gcc = requireGcc()
// Compiled here, where no time-out of a test runs.
const program = gcc.skip ? '' : await standIn()

describeWith(gcc)('switches', () => {
  test('the help has the defaults of NVRAM and memory', async () => {
    const { code, output } = await ended(['-h'])
    expect(code).toBe(0)
    expect(/^-n <n>.*\(default (\d+) KB\)$/m.exec(output)?.[1]).toBe('64')
    expect(/^-m <n>.*\(default (\d+) MB\)$/m.exec(output)?.[1]).toBe('512')
    expect(output).toMatch(/^-l\s/m)
  })

  test.each([
    [['-x', '400'], '-x: unknown option'],
    [[], 'expected one application id, got 0'],
    [['400', '401'], 'expected one application id, got 2'],
    [['0'], 'application id: expected a number from 1 to 511, got "0"'],
    [['512'], 'application id: expected a number from 1 to 511, got "512"'],
    [['4x'], 'application id: expected a number from 1 to 511, got "4x"'],
    [['-n', '4', '400'], '-n: expected a number from 8 to 1024, got "4"'],
    [['-e', '9', '-s', '8', '400'], 'more than 16 bays'],
    [['-m'], '-m: a value is missing'],
  ])('%j is refused', async (args, message) => {
    const { code, errors } = await ended(args)
    expect(code).toBe(1)
    expect(errors).toContain(message)
  })

  test('the router has the given options', async () => {
    const lab = await newLab()
    const router = await lab.start(['-e', '1', '-s', '3', '-n', '16', '-m', '128'])
    const said = await router.console.run('show version')
    expect(said).toContain('4 Ethernet interfaces\n12 Serial interfaces\n16K bytes of NVRAM.\n128M bytes of memory.\n')
    expect(said).toContain(`Application id ${lab.id}, pid ${router.child.pid}\n`)
    expect((await stat(lab.nvram)).size).toBe(16 * 1024)
    const names = (await router.console.run('show interfaces')).match(/^\w+\/\d/gm) ?? []
    expect([names.length, names[3], names[4], names[15]]).toEqual([16, 'Ethernet0/3', 'Serial1/0', 'Serial3/3'])
  })
})

describeWith(gcc)('what it needs to start', () => {
  const host = hostname()
  test.each([
    ['no section', `${host} = 0123456789abcdef;\n`, 'has no section [license]'],
    ['no line for the host', iourc('another.host'), `has no line for ${host}`],
    ['the line in another section', `[license]\n[other]\n${host} = 0123456789abcdef;\n`, `has no line for ${host}`],
    ['no semicolon', `[license]\n${host} = 0123456789abcdef\n`, 'hexadecimal digits and a semicolon'],
    ['a digit too few', iourc(host, '0123456789abcde'), 'has 15 digits, not 16'],
    ['a digit that is none', iourc(host, '0123456789abcdeg'), 'hexadecimal digits and a semicolon'],
  ])('a licence file with %s is refused', async (_, text, message) => {
    const lab = await newLab()
    await writeFile(lab.licence, text)
    const { code, errors } = await lab.refused()
    expect(code).toBe(1)
    expect(errors).toContain('IOU License Error')
    expect(errors).toContain(message)
  })

  test('a licence file that is missing, or not named, is refused', async () => {
    const lab = await newLab()
    await rm(lab.licence)
    expect((await lab.refused()).errors).toContain(`IOU License Error: ${lab.licence}: No such file`)
    expect((await ended([`${lab.id}`], lab.directory, {})).errors).toContain('IOURC is not set')
  })

  test('a licence file may have comments, other lines and other white space', async () => {
    const lab = await newLab()
    await writeFile(lab.licence, `# mine\n[license]\r\nother = 1;\n  ${host}=FEDCBA9876543210;  \n`)
    await lab.start()
  })

  test('a valid NETMAP is required', async () => {
    const lab = await newLab()
    await rm(join(lab.directory, 'NETMAP'))
    expect((await lab.refused()).errors).toContain('NETMAP: No such file')
    for (const line of ['912:0/0', '912:0/0 400:0/4', '912:16/0 400:0/0', '912:0/0 400:0/0 x', '1024:0/0 400:0/0']) {
      await writeFile(join(lab.directory, 'NETMAP'), `912:1/1  400:1/1\n${line}\n`)
      expect((await lab.refused()).errors, line).toContain('NETMAP: line 2 is not of the form')
    }
  })

  test('only one program at a time can use an id', async () => {
    const lab = await newLab()
    const router = await lab.start()
    const { code, errors } = await lab.refused()
    expect(code).toBe(1)
    expect(errors).toContain(`another instance has application id ${lab.id}`)
    // The one that was refused has taken nothing away from the one that runs.
    expect(await sockets(lab.id)).toEqual([true, true])
    expect(await readFile(join(netioDirectory, `${lab.id}.lck`), 'utf8')).toBe(`${router.child.pid}\n`)
    expect((await stat(netioDirectory)).mode & 0o777).toBe(0o700)
  })
})

describeWith(gcc)('the end', () => {
  test('SIGTERM ends it, and its socket and lock are gone', async () => {
    const lab = await newLab()
    const router = await lab.start()
    expect(await sockets(lab.id)).toEqual([true, true])
    router.child.kill('SIGTERM')
    expect(await router.exited).toEqual([0, null])
    expect(await sockets(lab.id)).toEqual([false, false])
  })

  test('it keeps running when its input ends', async () => {
    const lab = await newLab()
    const router = await lab.start()
    router.child.stdin.end()
    await expect(Promise.race([router.exited, after(300)])).resolves.toBe('still there')
  })

  test.each([
    ['crash', [null, 'SIGSEGV']],
    ['crash 3', [3, null]],
    ['crash SIGABRT', [null, 'SIGABRT']],
  ] as const)('%s leaves a socket and a lock, which the next one replaces', async (command, outcome) => {
    const lab = await newLab()
    const router = await lab.start()
    router.console.send(`${command}\r`)
    expect(await router.exited).toEqual(outcome)
    expect(await sockets(lab.id)).toEqual([true, true])
    await lab.start()
  })
})

describeWith(gcc)('the console', () => {
  test('it prints no echo unless asked', async () => {
    const { console } = await (await newLab()).start()
    console.send('enable\r\n\nterminal echo\r\0')
    expect(await console.expect(/(Router#){3}/)).toBe('Router#Router#Router#')
    console.send('ping 192.0.2.1 repeat 1\r')
    expect(await console.expect('Type')).toBe('ping 192.0.2.1 repeat 1\r\nType')
    await console.expect('Success rate is 0 percent (0/1)\r\nRouter#')
  })

  test('modes show in the prompt, and have their own commands', async () => {
    const { console } = await (await newLab()).start()
    for (const [line, shown] of [
      ['hostname R1', "% Invalid input detected at '^' marker.\r\n\r\nRouter>"],
      ['enable', 'Router#'],
      ['configure terminal', 'Router(config)#'],
      ['hostname R1', 'R1(config)#'],
      ['interface e0/1', 'R1(config-if)#'],
      ['ip address 10.0.0.1 255.0.255.0', 'Bad mask 255.0.255.0 for address 10.0.0.1\r\nR1(config-if)#'],
      ['interface Serial 2/0', 'R1(config-if)#'],
      ['exit', 'R1(config)#'],
      ['interface Serial0/0', "% Invalid input detected at '^' marker.\r\n\r\nR1(config)#"],
      ['end', 'R1#'],
      ['disable', 'R1>'],
    ] as const) {
      console.send(`${line}\r`)
      expect(await console.expect(/[>#]$/), line).toBe(shown)
    }
  })

  testWith(requireProgram('python3'))('with -L it is a socket, and an empty datagram there is no input', async () => {
    const lab = await newLab()
    lab.spawn(['-L'])
    const own = join(netioDirectory, `ttyC${lab.id}`)
    const peer = await newPeer(own, join(netioDirectory, `ttyS${lab.id}`))
    await peer.send(Buffer.alloc(0))
    await peer.send(Buffer.from('\r'))
    expect((await peer.next()).toString()).toBe('Router>')
  })
})

describeWith(gcc)('NVRAM', () => {
  test('a missing NVRAM is made, empty', async () => {
    const lab = await newLab()
    await lab.start()
    expect((await readFile(lab.nvram)).equals(Buffer.alloc(64 * 1024))).toBe(true)
  })

  test('a written NVRAM has both configurations in the first half, and an unchanged second half', async () => {
    const lab = await newLab()
    const before = Buffer.alloc(8 * 1024)
    before.fill(0x55, 4096)
    await writeFile(lab.nvram, before)
    const { console } = await lab.start(['-e', '0', '-s', '1', '-n', '8'])
    await console.configure('hostname R1234')
    expect(await console.run('write memory')).toBe('Building configuration...\n[OK]\n')
    const block = (unit: number) => `interface Serial0/${unit}\n no ip address\n shutdown\n!\n`
    const text = `!\nversion 15.4\n!\nhostname R1234\n!\n${[0, 1, 2, 3].map(block).join('')}end\n`
    // The text has 226 bytes, which is 0xe2, and so wants two more.
    expect(text.length).toBe(226)
    const written = await readFile(lab.nvram)
    expect(hex(written, 0, 4)).toBe('abcd 0001')
    // 36 = 0x24; 36 + 226 = 262 = 0x106.
    expect(hex(written, 6, 36)).toBe(`0f04 1000 0024 1000 0106 0000 00e2 ${'0000 '.repeat(8)}`.trim())
    expect(written.toString('latin1', 36, 262)).toBe(text)
    expect(hex(written, 262, 264)).toBe('0000')
    // 264 + 16 = 280 = 0x118, and five bytes on is 0x11d.
    expect(hex(written, 264, 280)).toBe('fedc 0001 1000 0118 1000 011d 0000 0005')
    expect(written.toString('latin1', 280, 285)).toBe('\nend\n')
    expect(written.subarray(285, 4096).every((byte) => byte === 0)).toBe(true)
    expect(ones(written.subarray(0, 4096))).toBe(0xffff)
    expect(written.subarray(4096).equals(before.subarray(4096))).toBe(true)
  })

  test.each([
    ['a half of 64 KB', 128, 0x0f04],
    ['an old version', 64, 0x0f00],
  ])('with %s the padding has four bytes more', async (_, size, version) => {
    const lab = await newLab()
    await writeFile(lab.nvram, nvram({ startup: 'hostname A\n', version, size }))
    const { console } = await lab.start(['-e', '0', '-s', '0', '-n', `${size}`])
    await console.run('enable')
    for (const [name, length, pad] of [
      ['R1', 35, 5],
      ['R12', 36, 0],
      ['R123', 37, 7],
    ] as const) {
      await console.configure(`hostname ${name}`)
      await console.run('write memory')
      const written = await readFile(lab.nvram)
      expect([written.readUInt16BE(6), written.readUInt32BE(16)], name).toEqual([version, length])
      expect(written.indexOf(Buffer.from('fedc0001', 'hex')), name).toBe(36 + length + pad)
    }
  })

  test('it reads the NVRAM that it wrote, also at a reload', async () => {
    const lab = await newLab()
    const first = await lab.start()
    await first.console.configure('hostname Kept', 'interface e1/3', 'description two words')
    await first.console.setAddress('Ethernet1/3', '10.1.2.3', '255.255.254.0')
    await first.console.run('write memory')
    await first.console.configure('hostname Lost')
    first.console.send('reload\r')
    await first.console.expect('Kept>')
    first.child.kill()
    await first.exited
    const { console } = await lab.start()
    await console.run('enable')
    const shown = await console.run('show running-config')
    expect(shown).toContain('\nhostname Kept\n')
    const block = 'interface Ethernet1/3\n description two words\n ip address 10.1.2.3 255.255.254.0\n no shutdown\n'
    expect(shown).toContain(`\n${block}`)
  })

  test('an NVRAM of another program is read, and its private part kept', async () => {
    const lab = await newLab()
    const startup =
      'hostname R7\nline con 0\n no shutdown\ninterface Ethernet0/0\n ip address 10.0.0.1 255.0.0.0\nend\n'
    await writeFile(lab.nvram, nvram({ startup, secret: 'key 1\nend\n' }))
    const { console } = await lab.start()
    await console.run('enable')
    expect(await console.run('show running-config')).toContain(' ip address 10.0.0.1 255.0.0.0\n shutdown\n')
    expect(await console.run('show private-config')).toBe('key 1\nend\n')
    await console.run('write memory')
    const written = await readFile(lab.nvram)
    const header = written.indexOf(Buffer.from('fedc0001', 'hex'))
    expect(written.toString('latin1', header + 16, header + 26)).toBe('key 1\nend\n')
  })

  test.each([
    [
      'a wrong checksum',
      (bytes: Buffer) => bytes.writeUInt16BE(bytes.readUInt16BE(4) ^ 1, 4),
      /bad checksum \w{4}, expected \w{4}/,
    ],
    ['another magic', (bytes: Buffer) => bytes.writeUInt16BE(0xabce, 0), 'unknown format abce 0001'],
    ['a compressed startup configuration', (bytes: Buffer) => bytes.writeUInt16BE(2, 2), 'unknown format abcd 0002'],
    ['a start elsewhere', (bytes: Buffer) => bytes.writeUInt32BE(0x10000020, 8), 'is said to be at 0x10000020'],
    ['a length that is not', (bytes: Buffer) => bytes.writeUInt32BE(99, 16), 'the startup configuration is said to be'],
    ['the private part elsewhere', (bytes: Buffer) => bytes.write('moved', 52), 'no private configuration at 52'],
  ])('%s is told', async (_, spoil, message) => {
    const lab = await newLab()
    const bytes = nvram({ startup: 'hostname R1\nend\n' })
    spoil(bytes)
    await writeFile(lab.nvram, bytes)
    const { greeting } = await lab.start()
    expect(greeting).toMatch(message)
    expect(greeting).toContain('%NVRAM: ')
  })

  test('an NVRAM of another size is not used', async () => {
    const lab = await newLab()
    await writeFile(lab.nvram, nvram({ startup: 'hostname R1\n' }))
    const { greeting, console } = await lab.start(['-n', '32'])
    expect(greeting).toContain('%NVRAM: the file has 65536 bytes, not 32 KB: it is not used\r\n')
    expect(greeting).toMatch(/Router>$/)
    await console.run('enable')
    await console.run('write memory')
    expect((await stat(lab.nvram)).size).toBe(32 * 1024)
  })

  test('files behind the configurations stay, and a configuration that would reach them is not written', async () => {
    const lab = await newLab()
    const before = Buffer.alloc(64 * 1024)
    before.writeUInt16BE(0xdcba, 2048)
    before.write('a file', 2048 + 32)
    await writeFile(lab.nvram, before)
    const { console } = await lab.start(['-e', '1', '-s', '0'])
    await console.run('enable')
    expect(await console.run('write memory')).toContain('[OK]')
    expect((await readFile(lab.nvram)).subarray(2048).equals(before.subarray(2048))).toBe(true)
    for (let unit = 0; unit < 4; unit++) {
      for (const digit of '1234') await console.configure(`interface e0/${unit}`, `description ${digit.repeat(200)}`)
    }
    expect(await console.run('write memory')).toContain('[OK]')
    await lab.stop()
    const more = await lab.start(['-e', '4', '-s', '0'])
    for (let bay = 1; bay < 4; bay++) {
      await more.console.configure(`interface e${bay}/0`, `description ${'x'.repeat(200)}`)
    }
    expect(await more.console.run('write memory')).toContain('%NVRAM: the configuration is too large\n[Failed]\n')
    expect((await readFile(lab.nvram)).subarray(2048).equals(before.subarray(2048))).toBe(true)
  })

  test('the file of -c is read when the NVRAM has no configuration', async () => {
    const lab = await newLab()
    await writeFile(join(lab.directory, 'initial-config.cfg'), 'hostname Initial\n')
    const { greeting } = await lab.start(['-c', 'initial-config.cfg'])
    expect(greeting).toMatch(/Initial>$/)
  })
})

describeWith(gcc)('packets', () => {
  test('two whose ports lead to each other ping, over Ethernet and serial lines', async () => {
    const [a, b] = [await newLab(), await newLab()]
    await a.leadTo(b.id)
    await b.leadTo(a.id)
    const [left, right] = [await a.start(), await b.start()]
    for (const [index, name] of ['Ethernet0/0', 'Ethernet1/3', 'Serial2/1', 'Serial3/3'].entries()) {
      await left.console.setAddress(name, `10.0.${index}.1`)
      await right.console.setAddress(name, `10.0.${index}.2`)
      expect(await left.console.ping(`10.0.${index}.2`), name).toBe(5)
      expect(await right.console.ping(`10.0.${index}.1`, { repeat: 80, size: 4082 }), name).toBe(80)
    }
    const said = await left.console.run('ping 10.0.0.2')
    expect(said).toContain('\n!!!!!\nSuccess rate is 100 percent (5/5), round-trip min/avg/max = ')
    expect(said).toMatch(/ = \d+\/\d+\/\d+ ms\n$/)
  })

  test('a missing peer does not answer, and a ping can be cancelled', async () => {
    const { console } = await (await newLab()).start()
    await console.setAddress('Ethernet0/0', '10.0.0.1')
    expect(await console.ping('10.0.0.2', { repeat: 2, timeout: 1 })).toBe(0)
    expect(await console.ping('10.0.0.1')).toBe(5)
    console.send('ping 10.0.0.2 repeat 1000 timeout 60\r')
    await console.expect('timeout is 60 seconds:\r\n')
    console.send('\x1e')
    await console.expect('Success rate is 0 percent (0/1)\r\nRouter#')
  })
})

describeWith(gcc, requireProgram('python3'))('datagrams', () => {
  /** A router with an address on 1/2, and the program that its ports lead to. */
  async function wired(args: readonly string[] = []) {
    const lab = await newLab()
    const router = await lab.start(args)
    const peer = await newPeer(join(netioDirectory, `${lab.id + 512}`), join(netioDirectory, `${lab.id}`))
    const id = lab.id.toString(16).padStart(4, '0')
    const peerId = (lab.id + 512).toString(16).padStart(4, '0')
    return { router, peer, id, peerId }
  }

  test('an ARP question is answered, with ids and ports the other way round', async () => {
    const { router, peer, id, peerId } = await wired()
    await router.console.setAddress('Ethernet1/2', '10.0.0.1')
    const question = '0001 0800 0604 0001 020000000009 0a000009 000000000000 0a000001'
    // Bay 1 and unit 2 are 0x21.
    await peer.send(bytes(`${id} ${peerId} 21 21 01 00  ffffffffffff 020000000009 0806 ${question}`))
    const mac = `aabbcc${id}21`
    const answer = `0001 0800 0604 0002 ${mac} 0a000001 020000000009 0a000009`
    const frame = `020000000009 ${mac} 0806 ${answer} ${'00'.repeat(18)}`
    expect((await peer.next()).toString('hex')).toBe(bytes(`${peerId} ${id} 21 21 01 00 ${frame}`).toString('hex'))
  })

  test('frames for other hosts are not answered', async () => {
    const { router, peer, id, peerId } = await wired()
    await router.console.setAddress('Ethernet1/2', '10.0.0.1')
    const frame = (to: string) =>
      `ffffffffffff 020000000009 0806 0001 0800 0604 0001 020000000009 0a000009 000000000000 ${to}`
    const right = 'ffff'
    for (const [header, to] of [
      [`${right} ${peerId} 21 21 01 00`, '0a000001'],
      [`${id} ${peerId} 21 21 02 00`, '0a000001'],
      [`${id} ${peerId} 21 21 01 01`, '0a000001'],
      [`${id} ${peerId} 12 12 01 00`, '0a000001'],
      [`${id} ${peerId} f1 f1 01 00`, '0a000001'],
      [`${id} ${peerId} 21 21 01 00`, '0a000002'],
    ] as const) {
      await peer.send(bytes(`${header} ${frame(to)}`))
    }
    await peer.send(bytes(`${id} ${peerId} 21`))
    await peer.send(Buffer.alloc(0))
    // From another port byte, so that it is known by it: this is the first that gets an answer.
    await peer.send(bytes(`${id} ${peerId} 21 00 01 00 ${frame('0a000001')}`))
    expect((await peer.next()).toString('hex', 0, 28)).toContain(`${peerId}${id}21210100`)
    expect(await router.console.run('show interfaces')).toContain('  2 packets input, 1 packets output\n')
  })

  test('an ARP request without an answer is repeated', async () => {
    const { router, peer } = await wired()
    await router.console.setAddress('Ethernet0/0', '10.0.0.1')
    router.console.send('ping 10.0.0.9 repeat 1\r')
    const [first, second] = [await peer.next(), await peer.next()]
    expect(first.toString('hex', 8 + 12, 8 + 22)).toBe('08060001080006040001')
    expect(second.equals(first)).toBe(true)
    expect(first.length).toBe(8 + 60)
  })

  test('a serial line has HDLC frames, and with -l keepalives, by default every ten seconds', async () => {
    const { router, peer, id, peerId } = await wired(['-l', '-e', '1', '-s', '1'])
    const { console } = router
    await console.setAddress('Serial1/0', '10.0.0.1', '255.255.255.252')
    expect(await console.run('show interfaces')).toContain('mask 255.255.255.252\n  Keepalive set (10 sec)\n')
    // The first one says that it has seen this one.
    await peer.send(bytes(`${id} ${peerId} 01 01 01 00  8f00 8035 00000002 00000007 00000000 ffff`))
    console.send('ping 10.0.0.2 repeat 1 size 36\r')
    const datagram = await peer.next()
    expect(datagram.toString('hex', 0, 12)).toBe(`${peerId}${id}010101000f000800`)
    expect(datagram.length).toBe(8 + 4 + 36)
    console.send('\x1e')
    const told = Date.now()
    await console.configure('interface Serial1/0', 'keepalive 1')
    for (const number of [1, 2]) {
      const keepalive = `8f00 8035 00000002 0000000${number} 00000007 ffff`
      expect((await peer.next()).toString('hex')).toBe(
        bytes(`${peerId} ${id} 01 01 01 00 ${keepalive}`).toString('hex'),
      )
    }
    expect(Date.now() - told).toBeGreaterThan(1990)
    expect(await console.run('show running-config')).toContain('\n keepalive 1\n')
  })
})

const gcc32 = gcc.skip ? gcc : requireGcc(32)
const program32 = gcc32.skip ? '' : await standIn(32)

testWith(gcc32)('there is one of 32 bits', async () => {
  expect((await readFile(program)).toString('hex', 0, 7)).toBe('7f454c46020101')
  expect((await readFile(program32)).toString('hex', 0, 7)).toBe('7f454c46010101')
  const { console } = await (await newLab()).start([], program32)
  expect(await console.run('show version')).toContain('32-bit')
})

interface Router {
  readonly child: ChildProcessWithoutNullStreams
  readonly console: IouConsole
  readonly exited: Promise<unknown[]>
  /** What it printed, up to the first prompt. */
  readonly greeting: string
}

/** A directory with what a router needs; one runs there at a time. */
async function newLab() {
  const id = freeApplicationId()
  const directory = await freshDirectory()
  const licence = join(directory, 'iourc')
  let last: { readonly child: ChildProcessWithoutNullStreams; readonly exited: Promise<unknown[]> } | undefined
  await writeFile(licence, iourc())
  const leadTo = (peer: number) => writeFile(join(directory, 'NETMAP'), netmap(id, peer))
  await leadTo(id + 512)
  onTestFinished(() => forget(`${id}`, `${id}.lck`, `ttyS${id}`))

  const start = (args: readonly string[], file = program) => {
    const child = spawn(file, [...args, `${id}`], { cwd: directory, env: { IOURC: licence } })
    const exited = once(child, 'exit')
    last = { child, exited }
    // Handlers run the other way round: files are removed when nothing uses them.
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await exited
    })
    return last
  }
  return {
    id,
    directory,
    licence,
    leadTo,
    nvram: join(directory, `nvram_${`${id}`.padStart(5, '0')}`),
    spawn: (args: readonly string[]) => void start(args),
    async start(args: readonly string[] = [], file = program): Promise<Router> {
      const { child, exited } = start(args, file)
      const console = new IouConsole(Duplex.from({ readable: child.stdout, writable: child.stdin }))
      return { child, exited, console, greeting: await console.expect(/\S+>$/) }
    },
    async stop(): Promise<void> {
      last?.child.kill()
      await last?.exited
    },
    refused: () => ended([`${id}`], directory, { IOURC: licence }),
  }
}

/** A program that is to end by itself. */
function ended(args: readonly string[], cwd?: string, env: Record<string, string> = {}) {
  return new Promise<{ code: unknown; output: string; errors: string }>((resolve) => {
    execFile(program, args, { cwd, env, timeout: hangMs }, (error, output, errors) => {
      resolve({ code: error === null ? 0 : error.code, output, errors })
    })
  })
}

const ports = Array.from({ length: 64 }, (_, index) => `${Math.floor(index / 4)}/${index % 4}`)

const netmap = (id: number, peer: number): string =>
  ports.map((port) => `${peer}:${port}${`${id}`.padStart(5)}:${port}\n`).join('')

/** Whether an id has its socket, and its lock. */
const sockets = async (id: number): Promise<boolean[]> =>
  ['', '.lck'].map((end) => existsSync(join(netioDirectory, `${id}${end}`)))

/** Datagrams by hand; Node has no UNIX sockets for them. */
async function newPeer(own: string, other: string) {
  const script = join(import.meta.dirname, '../../../stand-in/iou/peer.py')
  const child = spawn(python3, [script, own, other], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines: string[] = []
  let wake = () => {}
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line)
    wake()
  })
  onTestFinished(async () => {
    child.kill()
    await exited
    await rm(own, { force: true })
  })
  async function next(ms = hangMs): Promise<string> {
    const over = setTimeout(() => wake(), ms)
    const deadline = Date.now() + ms
    while (lines.length === 0 && Date.now() < deadline) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    clearTimeout(over)
    const line = lines.shift()
    if (line === undefined) throw new Error(`no datagram within ${ms} ms`)
    return line
  }
  expect(await next()).toBe('ready')
  return {
    next: async (ms?: number) => Buffer.from(await next(ms), 'hex'),
    send: async (datagram: Buffer) => void child.stdin.write(`${datagram.toString('hex')}\n`),
  }
}

/** An NVRAM with raw configurations; newlines behind the first make its length a multiple of four. */
function nvram({ startup: text, secret = '', version = 0x0f04, size = 64 }: NvramParts): Buffer {
  const startup = text.padEnd(Math.ceil(text.length / 4) * 4, '\n')
  const base = 0x10000000
  const whole = Buffer.alloc(size * 1024)
  const at = 36 + startup.length
  whole.set(bytes('abcd 0001 0000'))
  whole.writeUInt16BE(version, 6)
  ;[base + 36, base + at, startup.length].forEach((word, index) => {
    whole.writeUInt32BE(word, 8 + index * 4)
  })
  whole.write(startup, 36)
  whole.set(bytes('fedc 0001'), at)
  ;[base + at + 16, base + at + 16 + secret.length, secret.length].forEach((word, index) => {
    whole.writeUInt32BE(word, at + 4 + index * 4)
  })
  whole.write(secret, at + 16)
  whole.writeUInt16BE(~ones(whole.subarray(0, whole.length / 2)) & 0xffff, 4)
  return whole
}

interface NvramParts {
  readonly startup: string
  readonly secret?: string
  readonly version?: number
  /** In KB. */
  readonly size?: number
}

const bytes = (text: string): Buffer => Buffer.from(text.replace(/\s/g, ''), 'hex')

/** Words of two bytes. */
const hex = (from: Buffer, start: number, end: number): string =>
  (from.toString('hex', start, end).match(/.{4}/g) ?? []).join(' ')

async function forget(...names: readonly string[]): Promise<void> {
  for (const name of names) await rm(join(netioDirectory, name), { force: true })
}

const after = (ms: number): Promise<string> => new Promise((resolve) => setTimeout(resolve, ms, 'still there'))
