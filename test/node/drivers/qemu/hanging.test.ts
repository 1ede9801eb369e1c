import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { isAlive } from '../../../support/keeper.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { quickest, took } from '../../../support/rounds.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, obedient } from './boot-sectors.ts'
import { sharedAgent } from './machine-agent.ts'
import { booting, pidsOf } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

// A command that works is answered within its bound on a busy host, too.
const short = { adopt: 300, command: 3000, powerdown: 400, end: 300 }

const needsQemu = requireProgram(qemuName)

describeWith(needsQemu)('the bound of a wait', () => {
  const newLab = sharedAgent(short)
  /** An emulator that works has to begin within the bound, too. */
  const hasty = sharedAgent({ ...short, begin: 5000 })

  test('an emulator that hangs answers suspend with a conflict, keeps its state, and can be ended', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine()
    const round = async () => {
      expect((await nodes.start(machine)).status).toBe('started')
      process.kill(pidsOf(machine.node_id)[0] ?? 0, 'SIGSTOP')
      const action = await took(() =>
        expect(nodes.suspend(machine)).rejects.toMatchObject({
          status: 409,
          message: 'stop: the emulator did not answer within 3000 ms',
        }),
      )
      expect((await nodes.get(machine)).status).toBe('started')
      const end = await took(() => nodes.stop(machine))
      expect((await nodes.get(machine)).status).toBe('stopped')
      expect(pidsOf(machine.node_id)).toEqual([])
      return Math.max(action, end - 500)
    }
    expect(await quickest(10_000, round)).toBeLessThan(10_000)
    expect((await nodes.start(machine)).status).toBe('started')
  })

  test('a late reaction of an emulator is shown when it happens', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine()
    await nodes.start(machine)
    const [pid = 0] = pidsOf(machine.node_id)
    process.kill(pid, 'SIGSTOP')
    await expect(nodes.suspend(machine)).rejects.toThrow()
    const feed = await lab.payloads()
    process.kill(pid, 'SIGCONT')
    const told = await feed.until(({ type }) => type === 'node.updated')
    expect(told).toMatchObject({ node: { status: 'suspended' } })
  })

  test('an emulator that never opens its monitor is ended, and the start says so', async () => {
    const lab = await hasty()
    const { nodes } = lab.agent
    const qemu_path = await mutedEmulator(lab.data)
    const machine = await lab.machine({ qemu_path })
    await expect(nodes.start(machine)).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('The monitor of the emulator cannot be reached'),
    })
    const { status, status_reason } = await nodes.get(machine)
    expect(status).toBe('stopped')
    expect(status_reason).toContain('The monitor of the emulator cannot be reached')
    expect(isAlive(Number(await readFile(`${qemu_path}.pid`, 'utf8')))).toBe(false)
    await nodes.update(machine, { platform: 'x86_64' })
    expect(await nodes.start(machine)).toMatchObject({ status: 'started', status_reason: null })
  })

  test.for(['stop', 'remove', 'closing the project'] as const)(
    'a start whose disk tool hangs is ended by %s',
    async (how) => {
      const lab = await newLab()
      const { nodes, projects } = lab.agent
      // What the emulator can do is asked once for all three.
      const directory = join(lab.data, 'programs')
      const qemu_path = join(directory, qemuName)
      await mkdir(directory, { recursive: true })
      await symlink(findProgram(qemuName) ?? '', qemu_path).catch(() => {})
      const begun = join(directory, how)
      const script = `#!/bin/sh\necho $ >"${begun}.new" && mv "${begun}.new" "${begun}"\nexec sleep 1000\n`
      await writeFile(join(directory, 'qemu-img'), script, { mode: 0o755 })
      const image = join(directory, 'disk.img')
      await writeFile(image, counting)
      const machine = await lab.machine({ qemu_path, hda_disk_image: image })
      const start = nodes.start(machine)
      const refused = expect(start).rejects.toMatchObject({
        status: 409,
        message: 'The node was stopped while its disks were prepared',
      })
      await expect.poll(() => existsSync(begun), { timeout: hangMs }).toBe(true)
      if (how === 'stop') expect(await nodes.stop(machine)).toMatchObject({ status: 'stopped' })
      else if (how === 'remove') await nodes.remove(machine, { files: 'now' })
      else await projects.close(machine.project_id)
      await refused
      expect(isAlive(Number(await readFile(begun, 'utf8')))).toBe(false)
    },
  )

  test('an emulator that is silent once is started again, and that is reported', async () => {
    const lab = await hasty()
    const { nodes } = lab.agent
    const machine = await lab.machine({ qemu_path: await mutedEmulator(lab.data, 'once') })
    const feed = await lab.payloads()
    expect(await nodes.start(machine)).toMatchObject({ status: 'started', status_reason: null })
    expect(await feed.until(({ type }) => type === 'log.warning')).toMatchObject({
      message: expect.stringMatching(/^R1: The monitor of the emulator cannot be reached.*; it will be started again$/),
    })
  })

  test('an emulator that hangs after its guest was switched off is ended, and its machine is shown as stopped', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine({ qemu_path: await hangingEmulator(lab.data) })
    await nodes.start(machine)
    const feed = await lab.payloads()
    process.kill(pidsOf(machine.node_id)[0] ?? 0, 'SIGTERM')
    const told = await feed.until(({ type }) => type !== 'log.warning')
    expect(told).toMatchObject({ type: 'node.updated', node: { status: 'stopped', status_reason: null } })
    expect(pidsOf(machine.node_id)).toEqual([])
  })

  test('a guest that ignores its power button is ended after the bound, and that is reported', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine({ on_close: 'shutdown_signal' })
    await nodes.start(machine)
    const feed = await lab.payloads()
    expect(await took(() => nodes.stop(machine))).toBeGreaterThan(350)
    expect(pidsOf(machine.node_id)).toEqual([])
    expect(await feed.until(({ type }) => type !== 'node.updated')).toEqual({
      type: 'log.warning',
      message: 'R1: the guest did not shut down within 0.4 s of its power button; it was ended',
    })
  })
})

describeWith(needsQemu)('a guest that could take its time to shut down', () => {
  // To wait for that long is to hang.
  const newLab = sharedAgent({ powerdown: 10 * hangMs })

  test.for(['close', 'remove'] as const)('a guest is not waited for when the project is to %s', async (how) => {
    const lab = await newLab()
    const machine = await lab.machine({ on_close: 'shutdown_signal' })
    await lab.agent.nodes.start(machine)
    await lab.agent.projects[how](machine.project_id)
    expect(pidsOf(machine.node_id)).toEqual([])
  })

  test('a stop that waits for a guest ends when a client deletes the node', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine({ on_close: 'shutdown_signal' })
    await nodes.start(machine)
    const stop = nodes.stop(machine)
    await nodes.remove(machine, { files: 'now' })
    expect(await stop).toMatchObject({ status: 'stopped' })
  })

  test('a guest of a node that is deleted is not waited for', async () => {
    const lab = await newLab()
    const machine = await lab.machine({ on_close: 'shutdown_signal' })
    await lab.agent.nodes.start(machine)
    await lab.agent.nodes.remove(machine, { files: 'now' })
    expect(pidsOf(machine.node_id)).toEqual([])
  })

  test('a guest that reacts to its power button ends at once, also with -no-shutdown, and a suspended one gets the event', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const settings = { ...booting(await lab.image('obedient.img', obedient)), on_close: 'shutdown_signal' } as const
    const machine = await lab.machine({ ...settings, options: '-vga none -no-shutdown' })
    await nodes.start(machine)
    const { readable } = await nodes.console(machine, new AbortController().signal)
    const reader = readable.getReader()
    await reader.read()
    await nodes.suspend(machine)
    const feed = await lab.payloads()
    await nodes.stop(machine)
    expect(await feed.until(() => true)).toMatchObject({ type: 'node.updated', node: { status: 'stopped' } })
  })

  test('a disk grows while its machine is stopped, from before its first start on, and at no other time', async () => {
    const lab = await newLab()
    const { nodes } = lab.agent
    const machine = await lab.machine({ hda_disk_image: await lab.image('disk.img', counting) })
    const extend = () => nodes.action(machine, 'resizeDisk', { drive_name: 'hda', extend: 16 })
    await extend()
    await nodes.start(machine)
    await expect(extend()).rejects.toMatchObject({ status: 409, message: 'The disk is in use: stop the node first' })
    await nodes.suspend(machine)
    await expect(extend()).rejects.toMatchObject({ status: 409 })
    await nodes.stop(machine)
    await extend()
    await nodes.update(machine, { on_close: 'save_vm_state' })
    await nodes.start(machine)
    await nodes.stop(machine)
    await expect(extend()).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/^The disk holds the saved state of the machine/),
    })
    await expect(nodes.action(machine, 'resizeDisk', { drive_name: 'hdb', extend: 16 })).rejects.toMatchObject({
      status: 409,
      message: 'The node has no disk hdb: set hdb_disk_image first',
    })
  })
})

/** An emulator that runs on for long when its work has ended, as QEMU 7.2 may when a command comes at its end. */
async function hangingEmulator(data: string): Promise<string> {
  const path = join(data, 'hanging', qemuName)
  const qemu = findProgram(qemuName)
  await mkdir(join(data, 'hanging'))
  await writeFile(path, `#!/bin/sh\ncase "$*" in *-uuid*) ${qemu} "$@"; exec sleep 1000;; esac\nexec ${qemu} "$@"\n`)
  await chmod(path, 0o755)
  return path
}

/** Answers what it can do, and then does nothing when it is to run a machine, always or at its first start. */
async function mutedEmulator(data: string, when: 'always' | 'once' = 'always'): Promise<string> {
  const directory = join(data, `muted-${when}`)
  const isMuted = when === 'once' ? 'mkdir "$0.asked" 2>/dev/null && ' : ''
  const path = join(directory, qemuName)
  await mkdir(directory)
  await writeFile(
    path,
    `#!/bin/sh\ncase "$*" in *-uuid*) ${isMuted}echo $$ > "$0.pid" && exec sleep 1000;; esac\nexec ${findProgram(qemuName)} "$@"\n`,
  )
  await chmod(path, 0o755)
  return path
}
