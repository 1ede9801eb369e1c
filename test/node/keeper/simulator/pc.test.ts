import fc from 'fast-check'
import { expect, test } from 'vitest'
import { consoleCommands, findCommand } from '../../../../runtime/node/keeper/simulator/commands/index.ts'
import { TestPc, Wire } from './wire.ts'

/** Two pcs on one wire, 10.0.0.1 and 10.0.0.2. */
async function pair(...more: readonly string[]): Promise<[TestPc, TestPc, Wire]> {
  const wire = new Wire()
  const [one, two] = await Promise.all([
    TestPc.boot(wire, 1, 'ip 10.0.0.1/24 10.0.0.254', ...more),
    TestPc.boot(wire, 2, 'ip 10.0.0.2/24'),
  ])
  return [one, two, wire]
}

test('two pcs ping each other', async () => {
  const [one, two] = await pair()
  expect(await one.run('ping 10.0.0.2 -c 2 -i 10')).toMatch(
    /^\r\n84 bytes from 10\.0\.0\.2 icmp_seq=1 ttl=64 time=\d+\.\d{3} ms\r\n84 bytes from 10\.0\.0\.2 icmp_seq=2 ttl=64 time=\d+\.\d{3} ms\r\n$/,
  )
  expect(await two.run('ping 10.0.0.1 -c 1')).toContain('84 bytes from 10.0.0.1')
  expect(await one.run('show arp')).toMatch(/00:50:79:66:68:02 {2}10\.0\.0\.2 expires in \d+ seconds/)
})

test('a pc pings its own addresses, without a frame on the wire', async () => {
  const [pc, , wire] = await pair()
  const { length } = wire.frames
  expect(await pc.run('ping 10.0.0.1 -c 1')).toMatch(/^\r\n84 bytes from 10\.0\.0\.1 icmp_seq=1 ttl=64 time=/)
  expect(await pc.run('ping fe80::250:79ff:fe66:6801 -c 1')).toContain('fe80::250:79ff:fe66:6801 icmp6_seq=1 ttl=64')
  expect(await pc.run('ping 10.0.0.1 -2 -c 1')).toContain('84 bytes from 10.0.0.1 udp_seq=1 ttl=64')
  expect(await pc.run('ping 10.0.0.1 -3 -c 1')).toMatch(/Connect.*ttl=64[\s\S]*Close.*ttl=64/)
  expect(wire.frames).toHaveLength(length)
})

test('a ping above the MTU goes in fragments, unless that is forbidden', async () => {
  const [one, , wire] = await pair()
  expect(await one.run('ping 10.0.0.2 -c 1 -l 4000')).toContain('4028 bytes from 10.0.0.2')
  expect(Math.max(...wire.frames.map(({ length }) => length))).toBe(1514)
  expect(await one.run('ping 10.0.0.2 -c 1 -l 4000 -D')).toContain('too big')
})

test('udp and tcp pings reach the echo ports', async () => {
  const [one] = await pair()
  expect(await one.run('ping 10.0.0.2 -2 -c 1')).toContain('84 bytes from 10.0.0.2 udp_seq=1 ttl=64')
  expect(await one.run('ping 10.0.0.2 -P 17 -p 9 -c 1')).toContain('*10.0.0.2 udp_seq=1 ttl=64')
  const tcp = await one.run('ping 10.0.0.2 -3 -c 1')
  expect(tcp).toMatch(
    /Connect {3}7@10\.0\.0\.2 seq=1 ttl=64[\s\S]*SendData {2}7@10\.0\.0\.2[\s\S]*Close {5}7@10\.0\.0\.2/,
  )
  expect(await one.run('ping 10.0.0.2 -3 -p 80 -c 1')).toContain('RST returned')
})

test('an unreachable destination is reported: no answer, no host, no gateway, no address', async () => {
  const [one, , wire] = await pair()
  await one.run('ping 10.0.0.2 -c 1')
  wire.isCut = true
  expect(await one.run('ping 10.0.0.2 -c 2 -w 30 -i 10')).toBe(
    '\r\n10.0.0.2 icmp_seq=1 timeout\r\n10.0.0.2 icmp_seq=2 timeout\r\n',
  )
  expect(await one.run('ping 10.0.0.9 -c 1')).toBe('\r\nhost (10.0.0.9) not reachable\r\n')
  await one.run('ip 10.0.0.1/24')
  expect(await one.run('ping 8.8.8.8')).toContain('No gateway found')
  const three = await TestPc.boot(wire, 3)
  expect(await three.run('ping 10.0.0.1')).toContain('No IP address')
  expect(await three.run('ping nonsense..name')).toContain('Cannot resolve nonsense..name')
})

test('Ctrl-C ends a ping, and drops the input after it', async () => {
  const [one] = await pair()
  one.type('ping 10.0.0.2 -t -i 10\r')
  await one.until(/icmp_seq=3/)
  one.type('echo never\r')
  one.type('\x03')
  await one.until(/\r\n\rPC1> $/)
  expect(one.shown).not.toContain('\r\nnever')
  expect(await one.run('echo again')).toBe('again\r\n')
})

test('an address that another host has is not used', async () => {
  const [one] = await pair()
  expect(await one.run('ip 10.0.0.2/24')).toBe(
    'Checking for duplicate address...\r\n10.0.0.2 is being used by MAC 00:50:79:66:68:02\r\nAddress not changed\r\n',
  )
  expect(await one.run('show ip')).toContain('IP/MASK     : 10.0.0.1/24')
})

test.for([
  ['ip 192.168.1.5/26 192.168.1.1', '192.168.1.5/26', '192.168.1.1'],
  ['ip 192.168.1.5 255.255.255.192 192.168.1.1', '192.168.1.5/26', '192.168.1.1'],
  ['ip 192.168.1.5 192.168.1.1 26', '192.168.1.5/26', '192.168.1.1'],
  ['ip 192.168.1.5 192.168.1.1', '192.168.1.5/24', '192.168.1.1'],
  ['ip 192.168.1.5', '192.168.1.5/24', '0.0.0.0'],
] as const)('%s', async ([command, address, gateway]) => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run(command)).toContain('PC1 : 192.168.1.5')
  const shown = await pc.run('show ip')
  expect(shown).toContain(`IP/MASK     : ${address}`)
  expect(shown).toContain(`GATEWAY     : ${gateway}`)
})

test('IPv6 packets above the MTU go in fragments, which are put together, unless that is forbidden', async () => {
  const [one, two, wire] = await pair()
  const to = 'fe80::250:79ff:fe66:6802'
  expect(await one.run(`ping ${to} -c 1 -l 4000`)).toContain(`${to} icmp6_seq=1 ttl=64`)
  expect(Math.max(...wire.frames.map(({ length }) => length))).toBeLessThanOrEqual(1514)
  expect(await one.run(`ping ${to} -c 1 -l 4000 -2`)).toContain('4028 bytes from')
  expect(await one.run(`ping ${to} -c 1 -l 4000 -D`)).toContain('too big')
  expect(await two.run('ping fe80::250:79ff:fe66:6801 -c 1')).toContain('icmp6_seq=1')
})

test.for([
  ['ip 10.0.0.1/24 10.9.0.1', 'not same subnet'],
  ['ip 10.0.0.1/24 10.0.0.1', 'Invalid address'],
  ['ip 10.0.0.1/24 10.0.0.255', 'Invalid gateway address'],
  ['ip 10.0.0.1/24 127.0.0.1', 'Invalid gateway address'],
  ['ip 10.1.1.255/24', 'Invalid host address'],
  ['ip 10.1.1.0/24', 'Invalid host address'],
  ['ip 10.0.0.1 255.255.0.255', 'Invalid mask'],
  ['ip 127.0.0.1/8', 'Invalid address'],
  ['ip ::1/64', 'Invalid address'],
  ['ip ::/64', 'Invalid address'],
  ['ip ff02::1/64', 'Invalid address'],
] as const)('%s is refused in the words of VPCS: %s', async ([command, words]) => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run(command)).toBe(`${words}\r\n`)
  expect(await pc.run('show ip')).toContain('IP/MASK     : 0.0.0.0/0')
})

test('a subnet of two addresses has neither a broadcast address nor one of its own', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run('ip 10.0.0.0/31 10.0.0.1')).toContain('PC1 : 10.0.0.0 255.255.255.254 gateway 10.0.0.1')
})

test.for(['127.0.0.1', '0.0.0.1', '224.0.0.5', '255.255.255.255'])('%s is not sent to', async (address) => {
  const [pc, , wire] = await pair()
  const { length } = wire.frames
  expect(await pc.run(`ping ${address} -c 1`)).toBe(`\r\nhost (${address}) not reachable\r\n`)
  expect(wire.frames).toHaveLength(length)
})

test('a wrong option of ping is named, with what would be right', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run('ping 10.0.0.2 -l 65001')).toBe(
    'Invalid option: -l needs a number from 1 to 65000, not 65001\r\n',
  )
  expect(await pc.run('ping 10.0.0.2 -c')).toBe('Invalid option: -c needs a number from 1 to 1000000\r\n')
  expect(await pc.run('ping 10.0.0.2 -P 2')).toContain('-P needs 1 (ICMP), 6 (TCP) or 17 (UDP), not 2')
  expect(await pc.run('ping 10.0.0.2 -z')).toContain('Invalid option: -z. Use "ping ?" for help')
})

test('a pc answers by its own routes: a wrong mask or a missing gateway stays no secret', async () => {
  const wire = new Wire()
  await TestPc.boot(wire, 1, 'ip 10.0.0.1/24')
  const asker = await TestPc.boot(wire, 2, 'ip 10.10.0.1/8')
  for (const options of ['', '-2', '-3'])
    expect(await asker.run(`ping 10.0.0.1 -c 1 -w 50 ${options}`)).toContain('timeout')
  await asker.run('ip 10.0.0.9/24')
  expect(await asker.run('ping 10.0.0.1 -c 1')).toContain('84 bytes from 10.0.0.1')
})

test('a neighbour that announces another MAC address is found there at once', async () => {
  const wire = new Wire()
  const pc = await TestPc.boot(wire, 1, 'ip 10.0.0.1/24 10.0.0.254')
  const first = await TestPc.boot(wire, 2, 'ip 10.0.0.254/24')
  expect(await pc.run('ping 10.0.0.254 -c 1')).toContain('84 bytes from 10.0.0.254')
  first.pc.close()
  await TestPc.boot(wire, 3, 'ip 10.0.0.254/24')
  expect(await pc.run('ping 10.0.0.254 -c 1')).toContain('84 bytes from 10.0.0.254')
  expect(await pc.run('arp')).toContain('00:50:79:66:68:03  10.0.0.254')
  // What nobody asked for is not learned.
  await TestPc.boot(wire, 4, 'ip 10.0.0.77/24')
  expect(await pc.run('arp')).not.toContain('10.0.0.77')
})

test('input is UTF-8: letters beyond ASCII are echoed, and backspace and cursor keys go by characters', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run('echo Zürich 北京')).toBe('Zürich 北京\r\n')
  expect(await pc.run('echo aü\x7f!')).toContain('\r\na!\r\n')
  pc.shown = ''
  pc.type('echo 北')
  pc.type('\x7f')
  // Two columns are erased.
  expect(pc.shown).toBe('echo 北\b\b  \b\b')
  pc.type('\x03')
  // One character in two pieces of input.
  const bytes = new TextEncoder().encode('echo é\r')
  pc.shown = ''
  pc.pc.type(bytes.subarray(0, 6))
  pc.pc.type(bytes.subarray(6))
  await pc.until(/\r\né\r\n\r\n\rPC1> $/)
  // A combining mark is one character with its letter.
  pc.shown = ''
  pc.type('echo xe')
  pc.type('\u0301')
  pc.type('\x7f\r')
  await pc.until(/\r\nx\r\n\r\n\rPC1> $/)
})

test.for([
  'ip 300.1.1.1',
  'ip 10.0.0.1/33',
  'ip 10.0.0.1/0',
  'ip 224.0.0.1/24',
  'ip 10.0.0.1 24 10.0.0.2 10.0.0.3',
  'ip x',
])('%s is refused', async (command) => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run(command)).toBe('Invalid address\r\n')
  expect(await pc.run('show ip')).toContain('IP/MASK     : 0.0.0.0/0')
})

test('show ip has the lines of VPCS', async () => {
  const [one] = await pair()
  expect(await one.run('show ip')).toBe(
    [
      '',
      'NAME        : PC1[1]',
      'IP/MASK     : 10.0.0.1/24',
      'GATEWAY     : 10.0.0.254',
      'DNS         : ',
      'MAC         : 00:50:79:66:68:01',
      'LPORT       : 20000',
      'RHOST:PORT  : 127.0.0.1:30000',
      'MTU         : 1500',
      '',
    ].join('\r\n'),
  )
})

test('IPv6: neighbours are found, pinged and shown', async () => {
  const [one, two] = await pair()
  expect(await one.run('ip 2001:db8::1/64')).toContain('PC1 : 2001:db8::1/64')
  await two.run('ip 2001:db8::2/64')
  expect(await one.run('ping 2001:db8::2 -c 1')).toMatch(/2001:db8::2 icmp6_seq=1 ttl=64 time=/)
  expect(await one.run('ping fe80::250:79ff:fe66:6802 -c 1')).toContain('fe80::250:79ff:fe66:6802 icmp6_seq=1')
  expect(await two.run('ip 2001:db8::1/64')).toContain('is being used by MAC 00:50:79:66:68:01')
  expect(await one.run('show ipv6')).toContain('LINK-LOCAL SCOPE  : fe80::250:79ff:fe66:6801/64')
})

test('a saved configuration is restored by load', async () => {
  const [one, , wire] = await pair('ip dns 10.0.0.53', 'ip 2001:db8::1/64', 'set mtu 1400')
  expect(await one.run('save')).toBe('Saving startup configuration to startup.vpc\r\n.  done\r\n')
  const saved = one.files.get('startup.vpc') ?? ''
  one.pc.close()
  const again = new TestPc(wire, 7)
  await again.pc.boot(saved)
  const shown = (await again.run('show ip')).replace('68:07', '68:01')
  expect(shown).toContain('NAME        : PC1[1]')
  expect(shown).toContain('IP/MASK     : 10.0.0.1/24')
  expect(shown).toContain('DNS         : 10.0.0.53')
  expect(shown).toContain('MTU         : 1400')
  again.files.set('other.vpc', 'echo loaded\n# echo not\n')
  expect(await again.run('load other')).toContain('loaded\r\n')
  expect(await again.run('load missing')).toContain("Can't open missing.vpc")
})

test('a script that loads itself ends', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  pc.files.set('loop.vpc', 'load loop')
  expect(await pc.run('load loop')).toContain('nested too deeply')
})

test('set echo shows the lines of scripts, and does not change typed lines', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  const lines = ['set mtu 1400', 'echo told', '@set mtu 1300', '# nothing', 'sleep 0', 'sleep 0 slept']
  pc.files.set('lines.vpc', lines.join('\n'))
  const title = 'Executing the file "lines.vpc"\r\n'
  expect(await pc.run('show echo')).toContain('echo: off')
  expect(await pc.run('load lines')).toBe(`${title}told\r\nslept\r\n`)
  await pc.run('set echo on')
  expect(await pc.run('load lines')).toBe(`${title}PC1[1] set mtu 1400\r\ntold\r\nPC1[1] sleep 0\r\nslept\r\n`)
  await pc.run('set echo color red')
  expect(await pc.run('show echo')).toContain('echo: on')
  await pc.run('save')
  expect(pc.files.get('startup.vpc')).toContain('\nset echo on\n')
  await pc.run('set echo off')
  await pc.run('echo typed')
  expect(pc.shown).toMatch(/^echo typed\r\ntyped\r\n/)
})

test('commands may be abbreviated, when that is unambiguous', async () => {
  expect(findCommand('pi')).toMatchObject({ name: 'ping' })
  expect(findCommand('tracert')).toMatchObject({ name: 'trace' })
  expect(findCommand('s')).toBe('ambiguous')
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run('xyz 1')).toBe('Bad command: "xyz 1". Use ? for help.\r\n')
  expect(await pc.run('?')).toContain('ping HOST [OPTION ...]')
  for (const { name } of consoleCommands) expect(await pc.run(`${name} ?`)).not.toBe('')
})

test('lines are edited, recalled and completed', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  expect(await pc.run('echo ac\x1b[Db')).toContain('abc\r\n')
  expect(await pc.run('ech abc\x01\x1b[C\x1b[C\x1b[Co')).toContain('abc\r\n')
  expect(await pc.run('echo one two\x17three')).toContain('one three\r\n')
  expect(await pc.run('nonsense\x15echo kept')).toContain('kept\r\n')
  expect(await pc.run('\x1b[A')).toContain('kept\r\n')
  expect(await pc.run('\x10\x10')).toContain('one three\r\n')
  expect(await pc.run('vers\t')).toContain('Virtual PC Simulator')
  expect(await pc.run('history')).toContain('echo kept')
  pc.type('x'.repeat(5000))
  expect(await pc.run('\x15echo fine')).toContain('fine\r\n')
})

test('a line may end with CR, LF, CR LF or CR NUL', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  pc.type('echo a\recho b\necho c\r\necho d\r\0echo e\r')
  await pc.until(/e\r\n\r\n\rPC1> $/)
  expect(pc.shown.match(/Bad command/g)).toBeNull()
  for (const letter of 'abcde') expect(pc.shown).toMatch(new RegExp(`(\r\n|> )${letter}\r\n`))
})

test('quit is for the host to act on', async () => {
  const pc = await TestPc.boot(new Wire(), 1)
  await pc.run('quit')
  expect(pc.quits).toBe(1)
})

test('no frame makes it throw, or answer more than a few times', async () => {
  const [one, , wire] = await pair('ip 2001:db8::1/64')
  await one.run('ping 10.0.0.2 -c 1')
  const recorded = [...wire.frames]
  const mutated = fc
    .tuple(fc.constantFrom(...recorded), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 6 }), fc.nat(200))
    .map(([frame, changes, cut]) => {
      const copy = Uint8Array.from(frame)
      for (const [at, value] of changes) if (at < copy.length) copy[at] = value
      return copy.subarray(0, Math.max(0, copy.length - (cut % 3 === 0 ? cut : 0)))
    })
  wire.isCut = true
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 200 })), (frame) => {
      const before = wire.frames.length
      one.pc.receive(frame)
      expect(wire.frames.length - before).toBeLessThanOrEqual(2)
    }),
    { numRuns: 1000 },
  )
  wire.isCut = false
  // A forged ARP answer is believed, as by every host.
  await one.run('clear arp')
  expect(await one.run('ping 10.0.0.2 -c 1')).toContain('84 bytes from 10.0.0.2')
})
