import { randomUUID } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adapter, driverWorld, planOf, soon } from './virtualbox-driver.ts'

const unlocked = { lockedUntil: expect.any(Number) as number }

test('a start is a few commands by UUID, and a stop restores the settings of the machine', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('Router "1" {x}', { nics: { 1: { type: 'virtio' }, 3: { attachment: 'nat' } } })
  const before = world.machine(uuid)
  const [first, second] = [adapter(0), { ...adapter(1, false), type: 'Paravirtualized Network (virtio-net)' }]
  await driver.start(uuid, planOf([first, second], { ram: 768 }))
  const path = driver.serialPath(uuid)
  const tunnel = (n: number, { guestPort, switchPort }: typeof first, cable: string) =>
    `--nictype${n} 82540EM --nic${n} generic --nicgenericdrv${n} UDPTunnel --nicproperty${n} sport=${guestPort} ` +
    `--nicproperty${n} dest=127.0.0.1 --nicproperty${n} dport=${switchPort} --cableconnected${n} ${cable}`
  expect(world.commands()).toEqual([
    `showvminfo ${uuid} --machinereadable`,
    `showvminfo ${uuid}`,
    `modifyvm ${uuid} --nic2 null --uart1 0x3F8 4`,
    `showvminfo ${uuid} --machinereadable`,
    `showvminfo ${uuid}`,
    `modifyvm ${uuid} --memory 768 ${tunnel(1, first, 'on')} ${tunnel(2, second, 'off').replace('82540EM', 'virtio')} --nic3 none ` +
      `--uart1 0x3F8 4 --uartmode1 server ${path}`,
    `startvm ${uuid} --type headless`,
  ])
  expect(await driver.get(uuid)).toEqual({ uuid, name: 'Router "1" {x}', ram: 512, state: 'started' })
  world.commands()

  await driver.stop(uuid, 'power_off')
  const driverOf = (n: number) =>
    `${['sport', 'dest', 'dport'].map((key) => `--nicproperty${n} ${key}=`).join(' ')} --nicgenericdrv${n} `
  expect(world.commands()).toEqual([
    `showvminfo ${uuid} --machinereadable`,
    `controlvm ${uuid} poweroff`,
    `showvminfo ${uuid} --machinereadable`,
    `showvminfo ${uuid} --machinereadable`,
    `modifyvm ${uuid} --memory 512 ${driverOf(1)} --nictype1 virtio --cableconnected1 on --nic1 null ` +
      `${driverOf(2)} --nictype2 82540EM --cableconnected2 on --nic2 null --nic2 none --nic3 nat ` +
      '--uartmode1 disconnected --uart1 off',
    `showvminfo ${uuid} --machinereadable`,
  ])
  expect(world.machine(uuid)).toEqual({ ...before, ...unlocked })
  expect(await driver.get(uuid)).toMatchObject({ state: 'stopped', ram: 512 })
})

test('all settings of the user are restored: networks, drivers, traces, serial port', async () => {
  const { world, driver, directory } = await driverWorld({})
  const { uuid } = world.add('mine', {
    nics: {
      1: { attachment: 'bridged', bridge: 'eth0', cable: false, type: 'Am79C973', trace: true },
      2: { attachment: 'generic', driver: 'UDPTunnel', properties: { sport: '4444', dest: '10.0.0.1', dport: '4445' } },
      3: { attachment: 'intnet', intnet: 'my net' },
      4: { attachment: 'hostonly', hostonly: 'vboxnet0' },
      6: { attachment: 'natnetwork', natnetwork: 'NatNetwork' },
      7: { attachment: 'generic', driver: 'VDE', properties: { network: '/tmp/x' } },
    },
    uart: { on: true, base: '0x02f8', irq: '3', mode: 'file,/tmp/a, b.log' },
  })
  const before = world.machine(uuid)
  await driver.start(
    uuid,
    planOf(
      [0, 1, 2, 3, 4].map((index) => adapter(index)),
      { useAnyAdapter: true },
    ),
  )
  const running = world.machine(uuid)
  expect(running.nics.slice(0, 7).map(({ enabled, attachment }) => (enabled ? attachment : 'none'))).toEqual([
    ...Array<string>(5).fill('generic'),
    ...['none', 'none'],
  ])
  expect(running.nics[0]).toMatchObject({ trace: false, cable: true, type: '82540EM' })
  expect(await driver.usedAdapters(uuid)).toEqual([0, 2, 3, 5])
  expect(await readdir(join(directory, 'run'))).toEqual(expect.arrayContaining([`${uuid}.json`]))
  await driver.stop(uuid, 'power_off')
  const { intnet } = before.nics[4] ?? { intnet: '' }
  expect(intnet).toBe('intnet')
  expect(world.machine(uuid)).toEqual({ ...before, ...unlocked })
  expect(await readdir(join(directory, 'run'))).toEqual([])
})

test.each([
  ['recorded', 'modifyvm'],
  ['looked into', 'modifyvm .* --memory'],
  ['made ready', 'startvm'],
])('when a service is killed after a machine has been %s, the next one continues', async (_, at) => {
  const { world, driver, again } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: { attachment: 'nat' } } })
  const before = world.machine(uuid)
  world.fault(at, 'hang')
  const start = driver.start(uuid, planOf([adapter(0), adapter(1)], { ram: 600, useAnyAdapter: true }))
  await expect.poll(() => world.commands().some((line) => new RegExp(at).test(line)), soon).toBe(true)
  // Nothing comes from it any more, as if it had been killed there.
  const closed = driver.close()
  world.killCommands()
  await expect(start).rejects.toMatchObject({ status: 409 })
  await closed
  const next = again()
  await next.recover()
  expect(world.machine(uuid)).toEqual(before)
  world.commands()
  await next.recover()
  expect(world.commands()).toEqual([])
})

test('the settings of a machine that ran on after its service was killed are restored when it has stopped', async () => {
  const { world, driver, again } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  const before = world.machine(uuid)
  await driver.start(uuid, planOf([adapter(0)], { ram: 700 }))
  const next = again()
  await next.recover()
  expect(world.machine(uuid)).toMatchObject({ state: 'running', memory: 700 })
  process.kill(world.machine(uuid).pid, 'SIGKILL')
  await expect.poll(async () => (await next.get(uuid))?.state, soon).toBe('stopped')
  expect(world.machine(uuid)).toEqual({ ...before, state: 'aborted', ...unlocked })
  // An aborted one can be started.
  await next.start(uuid, planOf([adapter(0)]))
  expect(await next.get(uuid)).toMatchObject({ state: 'started' })
})

test('settings that a user changed meanwhile are not restored', async () => {
  const { world, driver, again } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {}, 2: {} } })
  await driver.start(uuid, planOf([adapter(0), adapter(1)], { ram: 700 }))
  process.kill(world.machine(uuid).pid, 'SIGKILL')
  world.alter(({ machines: [machine] }) => {
    if (machine === undefined) return
    machine.memory = 2048
    Object.assign(machine.nics[0] ?? {}, { attachment: 'bridged', bridge: 'eth1' })
  })
  // Its end is seen a moment after the signal.
  const next = again()
  await expect.poll(async () => (await next.get(uuid))?.state, soon).toBe('stopped')
  const { memory, nics, uart } = world.machine(uuid)
  expect([memory, nics[0]?.attachment, nics[1]?.attachment, uart.on]).toEqual([2048, 'bridged', 'null', false])
})

test('records are written before any change; other files are not touched', async () => {
  const { world, driver, directory, again } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  world.fault('modifyvm', 'slow', { ms: 200 })
  const start = driver.start(uuid, planOf([adapter(0)]))
  await expect.poll(() => world.commands().some((line) => line.startsWith('modifyvm')), soon).toBe(true)
  const file = join(directory, 'run', `${uuid}.json`)
  const text = await readFile(file, 'utf8')
  expect(JSON.parse(text)).toMatchObject({ version: 1, uuid, adapters: [{ number: 1, attachment: 'null' }] })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  await start
  await driver.stop(uuid, 'power_off')
  const before = world.machine(uuid)
  await writeFile(join(directory, 'run', `${randomUUID()}.json`), text)
  await writeFile(file, '{"version":2}')
  await again().recover()
  expect(world.machine(uuid)).toEqual(before)
})

test('a start that fails leaves nothing behind', async () => {
  const { world, driver, directory } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  const before = world.machine(uuid)
  world.fault('startvm', 'die', { stderr: 'VBoxManage: error: VT-x is being used by another hypervisor\n' })
  await expect(driver.start(uuid, planOf([adapter(0)], { ram: 999 }))).rejects.toMatchObject({
    status: 409,
    message: 'VirtualBox: VT-x is being used by another hypervisor',
  })
  expect(world.machine(uuid)).toEqual(before)
  // One that started although its command failed is ended.
  world.fault('startvm', 'lose')
  await expect(driver.start(uuid, planOf([adapter(0)]))).rejects.toMatchObject({ status: 409 })
  expect(world.machine(uuid)).toEqual({ ...before, ...unlocked })
  // So is one whose serial port does not appear.
  world.fault('modifyvm .*--uartmode1 server', 'die', { stderr: 'VBoxManage: error: Unknown option: --uartmode1\n' })
  await expect(driver.start(uuid, planOf([adapter(0)]))).rejects.toMatchObject({ status: 409 })
  expect(world.machine(uuid)).toEqual({ ...before, ...unlocked })
  expect(await readdir(join(directory, 'run'))).toEqual([])
})

test('an adapter in another use is not taken without use_any_adapter', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: { attachment: 'nat' }, 2: {} } })
  expect(await driver.usedAdapters(uuid)).toEqual([0])
  const before = world.machine(uuid)
  const refused = driver.start(uuid, planOf([adapter(0), adapter(1)]))
  await expect(refused).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('Not attached') as string,
  })
  expect(world.machine(uuid)).toEqual(before)
  // Without a link it is left as it is.
  await driver.start(uuid, planOf([adapter(0, false), adapter(1)]))
  expect(world.machine(uuid).nics[0]).toEqual(before.nics[0])
  await expect(driver.setCarrier(uuid, adapter(0))).rejects.toMatchObject({ status: 409 })
})

test('a machine has as many adapters as its chipset', async () => {
  const { world, driver } = await driverWorld()
  const small = world.add('small').uuid
  const large = world.add('large', { chipset: 'ich9' }).uuid
  expect([await driver.maxAdapters(small), await driver.maxAdapters(large)]).toEqual([8, 36])
  await expect(driver.start(small, planOf([adapter(8)]))).rejects.toMatchObject({ status: 409 })
})
