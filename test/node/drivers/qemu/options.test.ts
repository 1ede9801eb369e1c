import { execFileSync, spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type OptionRules, parseOptions } from '../../../../runtime/node/drivers/qemu/options.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { escaped, membersIn } from '../../../../src/model/kinds/machine-options/option-list.ts'
import { judgeOptions, optionFlags, takingArgument } from '../../../../src/model/kinds/machine-options/option-rules.ts'
import { shellWords } from '../../../../src/model/kinds/machine-options/shell-words.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const placeholders = {
  ...{ 'vm-name': "R1, the 'first'", 'vm-id': 'v-id', 'project-id': 'p-id', 'project-path': '/labs/one' },
  ...{ 'console-port': 5000, 'guest-cid': 5000 },
}
const local: OptionRules = { isLocal: true, consoleType: 'telnet', placeholders }
const remote: OptionRules = { ...local, isLocal: false }
const args = (text: string, rules = local) => parseOptions(text, rules).args

test.for([
  ['', []],
  [' \t\r\n', []],
  ['-a  b\n-c', ['-a', 'b', '-c']],
  [`'a b' "c d"`, ['a b', 'c d']],
  [`a'b'"c"d`, ['abcd']],
  [`'' ""`, ['', '']],
  [`"a\\"b" 'a\\b'`, ['a"b', 'a\\b']],
  [`"a\\b\\\\c\\$d"`, ['a\\b\\c$d']],
  ['a\\ b \\"c', ['a b', '"c']],
  ['a\\\nb', ['ab']],
  ['$HOME `id` *.img #x', ['$HOME', '`id`', '*.img', '#x']],
] as const)('the words of %j', ([text, words]) => {
  expect(shellWords(text, 'options')).toEqual(words)
})

test.for([
  [`-append 'x`, "options: the quote ' is not closed"],
  [`-append "x`, 'options: the quote " is not closed'],
  ['-append x\\', 'options: a backslash at the end, expected a character after it'],
] as const)('%j is refused', ([text, message]) => {
  expect(() => parseOptions(text, local)).toThrow(expect.objectContaining({ status: 400, message }))
})

test('any words are read from their quoted form, as by a real shell', () => {
  const text = fc.string({ unit: fc.constantFrom(...`ab'"\\ \n\t$é`) })
  fc.assert(
    fc.property(fc.array(text), (words) => {
      const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
      expect(shellWords(quoted, 'options')).toEqual(words)
    }),
  )
  const safe = fc.string({ unit: fc.constantFrom(...`ab"\\ x'`), maxLength: 12 })
  fc.assert(
    fc.property(safe, (line) => {
      let ours: string[]
      try {
        ours = shellWords(line, 'options')
      } catch {
        return
      }
      const real = execFileSync('/bin/sh', ['-c', `printf '[%s]' ${line}`], { encoding: 'utf8' })
      expect(real).toBe(ours.length === 0 ? '[]' : ours.map((word) => `[${word}]`).join(''))
    }),
    { numRuns: 25 },
  )
})

test('the members of an argument, with doubled commas and as JSON', () => {
  expect(membersIn('pc,accel=kvm,usb')).toEqual([
    ['', 'pc'],
    ['accel', 'kvm'],
    ['usb', 'on'],
  ])
  expect(membersIn('file=a,,b,if=ide')).toEqual([
    ['file', 'a,b'],
    ['if', 'ide'],
  ])
  expect(membersIn('file=a,,,if=ide')).toEqual([
    ['file', 'a,'],
    ['if', 'ide'],
  ])
  expect(membersIn('{"driver": "e1000", "id": "x"}')).toContainEqual(['id', 'x'])
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...',a=b') }), (value) => {
      expect(membersIn(`x,file=${escaped(value)},y=z`)).toEqual([
        ['', 'x'],
        ['file', value],
        ['y', 'z'],
      ])
    }),
  )
})

test('options of a local lab go through as they are', () => {
  const text =
    '-nographic -cpu host --smp 2,cores=2 -serial telnet:127.0.0.1:7000,server,nowait -netdev user,id=u -device e1000,netdev=u -drive file=/x.img -append "-S -monitor" -chardev socket,id=c,path=/tmp/x -object filter-dump,id=f,netdev=pb-net0,file=d.pcap'
  expect(args(text)).toEqual([
    ...['-nographic', '-cpu', 'host', '-smp', '2,cores=2', '-serial', 'telnet:127.0.0.1:7000,server,nowait'],
    ...['-netdev', 'user,id=u', '-device', 'e1000,netdev=u', '-drive', 'file=/x.img', '-append', '-S -monitor'],
    ...['-chardev', 'socket,id=c,path=/tmp/x', '-object', 'filter-dump,id=f,netdev=pb-net0,file=d.pcap'],
  ])
})

test.for([
  '-monitor stdio',
  '--monitor none',
  '-mon chardev=x',
  '-qmp tcp::4444,server',
  '-qmp-pretty stdio',
  '-serial stdio',
  '-serial mon:stdio',
  '-serial mon:vc',
  '-chardev stdio,id=x',
  '-chardev backend=stdio,id=x',
  '-netdev user,id=pb-net0',
  `-netdev '{"type": "user", "id": "pb-net0"}'`,
  '-device e1000,netdev=pb-net1',
  '-device virtserialport,chardev=pb-serial',
  '-net socket,name=pb-net0',
  '-drive file=x,id=pb-hda',
  '-set netdev.pb-net0.udp=1.2.3.4:5',
  '-global isa-serial.chardev=pb-qmp',
  '-daemonize',
  '-pidfile x',
  '-S',
  '-preconfig',
  '-name other',
  '-curses',
  '-display curses,charset=CP437',
  '-version',
  '-help',
])('%s is refused even in local mode, by its name', (text) => {
  const name = text.replace(/^--/, '-').split(' ')[0] ?? ''
  expect(() => parseOptions(text, local)).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringContaining(`options: ${name}`) }),
  )
})

test.for([
  '-only-migratable -monitor stdio',
  '-async-teardown -daemonize',
  '-no-such-flag -monitor stdio',
  '-no-such-flag x -S',
  '-no-such-flag -append -monitor stdio',
  '-no-such-flag -append -serial stdio',
  '-other 1 -cpu max -more -set netdev.pb-net0.x=1',
])('every word is checked, whatever comes before it: %s', (text) => {
  expect(() => parseOptions(text, local)).toThrow(expect.objectContaining({ status: 400 }))
  expect(() => parseOptions(text, remote)).toThrow(expect.objectContaining({ status: 400 }))
})

test('an unknown option of a newer version goes through in local mode', () => {
  expect(args('-no-such-option a=b -append "-S -monitor" -cpu max')).toHaveLength(6)
})

const qemu = findProgram('qemu-system-x86_64')

testWith(requireProgram('qemu-system-x86_64'))(
  'the table knows every option of the QEMU of this host, and whether it has an argument',
  () => {
    const help = execFileSync(qemu ?? '', ['-help'], { encoding: 'utf8' })
    const listed = help
      .split('\n')
      .flatMap((line) => [
        ...(/^--?[\w?].*/.exec(line)?.[0].split(/ {2,}/, 1)[0] ?? '').matchAll(/(?:^|\/| or )--?([\w?-]+)/g),
      ])
    const names = [...new Set(listed.map(([, name = '']) => name))]
    expect(names.length).toBeGreaterThan(90)
    for (const name of names) expect([name, optionFlags.has(name) || takingArgument.has(name)]).toEqual([name, true])
    // It complains of the first unknown option before it does anything. What an option takes is none.
    const complaint = (words: readonly string[]) =>
      spawnSync(qemu ?? '', [...words, '-no-such-option'], { encoding: 'utf8', timeout: hangMs, input: '' }).stderr
    const withArgument = names.filter((name) => takingArgument.has(name))
    expect(complaint(withArgument.flatMap((name) => [`-${name}`, `-${name}-takes-nothing`]))).toContain(
      '-no-such-option: invalid option',
    )
    // A flag leaves -name to be an option, which then takes the word after it.
    const flags = names.filter((name) => optionFlags.has(name))
    expect(complaint(flags.flatMap((name) => [`-${name}`, '-name', `-${name}-takes-a-word`]))).toContain(
      '-no-such-option: invalid option',
    )
    expect(complaint(['-cpu', '-name', '-cpu-takes-a-word'])).toContain('-cpu-takes-a-word: invalid option')
    expect(complaint(['-nographic', '-nographic-takes-nothing'])).toContain('-nographic-takes-nothing: invalid option')
  },
)

test('options that are allowed outside local mode without an argument have none', () => {
  const texts = [...optionFlags].filter((name) => judgeOptions(name, '') === 'allowed')
  expect(texts).toContain('nographic')
  for (const name of takingArgument) expect(optionFlags.has(name), name).toBe(false)
})

test('a second console of the same type is refused, another display is not', () => {
  expect(() => parseOptions('-vnc :1', { ...local, consoleType: 'vnc' })).toThrow('console_type is already vnc')
  expect(() => parseOptions('-spice port=1', { ...local, consoleType: 'spice+agent' })).toThrow(
    'is already spice+agent',
  )
  expect(parseOptions('-vnc :1', local)).toMatchObject({ hasDisplay: true })
})

test('an option without its argument is refused', () => {
  expect(() => parseOptions('-cpu', local)).toThrow('options: -cpu at the end, expected its argument')
})

test.for([
  '-nographic -cpu host,+vmx -smp 4,sockets=2 -machine q35,accel=tcg,smm=off -accel kvm',
  '-boot menu=on,reboot-timeout=5 -rtc base=utc -vga std -usb -usbdevice tablet -device usb-tablet,bus=usb-bus.0',
  '-smbios type=1,product=VM/x,serial=%vm-name% -uuid %vm-id% -global PIIX4_PM.disable_s3=1 -icount shift=7,sleep=off',
  '-fw_cfg name=opt/x,string=a/b -no-reboot -device virtio-rng-pci -serial null -net none -display none -k de',
])('outside local mode %s may be used', (text) => {
  expect(args(text, remote).length).toBeGreaterThan(3)
})

test.for([
  '/etc/passwd',
  '-drive file=/etc/shadow',
  '-hda /etc/shadow',
  '-blockdev driver=file,filename=/etc/shadow,node-name=x',
  '-fsdev local,path=/,id=x,security_model=none',
  '-virtfs local,path=/',
  '-netdev user,id=x',
  '-nic tap',
  '-net nic',
  '-chardev file,id=x,path=/x',
  '-serial file:/x',
  '-serial tcp:1.2.3.4:5',
  '-kernel /vmlinuz',
  '-readconfig /x',
  '-writeconfig x',
  '-object memory-backend-file,id=x,mem-path=/x',
  '-device vfio-pci,host=01:00.0',
  '-device loader,file=/x',
  '-device usb-tablet,romfile=/etc/shadow',
  '-device VGA,romfile=x',
  `-device '{"driver": "VGA", "romfile": "x"}'`,
  '-device driver=vfio-pci,host=1',
  '-device VGA,driver=vfio-pci',
  '-global VGA.romfile=x',
  '-global driver=VGA,property=romfile,value=x',
  '-machine pc,firmware=x',
  '-machine q35,dumpdtb=x',
  '-M pc,kernel=x',
  '-boot splash=/etc/shadow',
  '-icount shift=1,rr=record,rrfile=x',
  '-smbios file=/etc/shadow',
  '-smbios type=11,path=/etc/shadow',
  '-fw_cfg name=opt/x,file=/etc/shadow',
  '-usbdevice disk:/x',
  '-accel qtest',
  '-accel accel=tcg,accel=xen',
  '-display vnc=:1',
  '-vnc :1',
  '-m 100G',
  '-D /x',
  '-gdb tcp::1',
  '-s',
  '-sandbox off',
  '-runas root',
  '-constructor x',
])('outside local mode %s may not be used', (text) => {
  expect(() => parseOptions(text, remote)).toThrow(expect.objectContaining({ status: 400 }))
})

test('values of placeholders cannot add options', () => {
  expect(args('-smbios type=1,serial=%vm-name%,sku=%project-id%', remote)).toEqual([
    '-smbios',
    "type=1,serial=R1,, the 'first',sku=p-id",
  ])
  expect(args('-append "n=%vm-name% p=%console-port% %other%"')).toEqual([
    '-append',
    "n=R1, the 'first' p=5000 %other%",
  ])
  const sly = { ...remote, placeholders: { ...placeholders, 'vm-name': 'x,path=/etc/shadow' } }
  expect(args('-smbios type=11,value=%vm-name%', sly)[1]).toBe('type=11,value=x,,path=/etc/shadow')
})

test('the acceleration is read from the options, and removed options of QEMU are left out', () => {
  const of = (text: string) => parseOptions(text, local)
  expect(of('')).toMatchObject({ acceleration: 'ours', args: [] })
  expect(of('-no-kvm -no-hax')).toMatchObject({ acceleration: 'off', args: [] })
  expect(of('-enable-hax')).toMatchObject({ acceleration: 'ours', args: [] })
  expect(of('-icount shift=1')).toMatchObject({ acceleration: 'off', args: ['-icount', 'shift=1'] })
  expect(of('-enable-kvm')).toMatchObject({ acceleration: 'given', args: ['-enable-kvm'] })
  expect(of('-accel tcg')).toMatchObject({ acceleration: 'given' })
  expect(of('-machine accel=tcg -machine type=q35')).toMatchObject({ acceleration: 'given', machine: 'q35' })
  expect(of('-M microvm,rtc=on')).toMatchObject({ acceleration: 'ours', machine: 'microvm' })
  expect(of('-uuid x -vga none -nographic -device a -device b')).toMatchObject({
    ...{ hasUuid: true, hasVga: true, hasDisplay: true, devices: 2 },
  })
})
