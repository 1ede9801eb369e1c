import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { watchLoad } from '../../runtime/node/drivers/dynamips/load.ts'
import { RouterLab, type RouterRef } from '../node/drivers/dynamips/router-lab.ts'
import { busy, idling, ring } from '../stand-in/mips/programs.ts'
import { hex } from '../support/dynamips.ts'
import { hangMs } from '../support/limits.ts'
import { requireProgram } from '../support/require.ts'
import { describeWith } from '../support/test-with.ts'

const needsDynamips = requireProgram('dynamips')

const idle = hex(ring[3] ?? 0)
interface Asked {
  readonly lab: RouterLab
  readonly ref: RouterRef
  readonly answer: Promise<unknown>
}
let asked: Record<'busy' | 'proposed', Asked> | undefined

// Each takes the 10 s, so they are asked at the same time, of two hosts, and all else is tested meanwhile.
beforeAll(async () => {
  if (needsDynamips.skip) return
  const [one, other] = [await RouterLab.openForAll(), await RouterLab.openForAll()]
  const [never, runs] = [await one.router(busy), await other.router(idling, { idlepc: idle })]
  await other.agent.nodes.start(runs)
  asked = {
    busy: {
      lab: one,
      ref: never,
      answer: one.agent.nodes.action(never, 'autoIdlePc', {}).catch((error: unknown) => error),
    },
    proposed: { lab: other, ref: runs, answer: other.agent.nodes.action(runs, 'idlePcProposals', {}) },
  }
  asked.proposed.answer.catch(() => {})
})
afterAll(() => Promise.all(Object.values(asked ?? {}).map(({ lab }) => lab.remove())))

function askedFor(which: 'busy' | 'proposed'): Asked {
  if (asked === undefined) throw new Error('nothing was asked')
  return asked[which]
}

describeWith(needsDynamips)('a measurement', () => {
  const gone = new Error('went away')

  /** One that has begun, in a host whose routers take so long to boot. */
  async function begun(boot: number, signal?: AbortSignal) {
    const lab = await RouterLab.open({ bounds: { boot } })
    const ref = await lab.router(idling)
    const answer = lab.agent.nodes.action(ref, 'autoIdlePc', {}, signal)
    answer.catch(() => {})
    await expect.poll(async () => (await lab.get(ref)).status).toBe('started')
    // Into the command that takes the samples.
    if (boot < 1000) await delay(boot + 500)
    return { lab, ref, answer, since: performance.now() }
  }

  /** That it ended at once, and left nothing. */
  async function requireClean(lab: RouterLab, since: number): Promise<void> {
    expect(performance.now() - since).toBeLessThan(hangMs / 2)
    expect([lab.pids, await lab.ports()]).toEqual([[], []])
  }

  test.each([
    ['boot', 10 * hangMs],
    ['look at it', 50],
  ])('ends at once when its client disconnects during the %s', async (_, boot) => {
    const asker = new AbortController()
    const { lab, ref, answer, since } = await begun(boot, asker.signal)
    asker.abort(gone)
    await expect(answer).rejects.toThrow('went away')
    await requireClean(lab, since)
    expect(await lab.get(ref)).toMatchObject({ status: 'stopped', status_reason: null })
  })

  test('starts nothing when its client has disconnected before', async () => {
    const lab = await RouterLab.open()
    const ref = await lab.router(idling)
    await expect(lab.agent.nodes.action(ref, 'autoIdlePc', {}, AbortSignal.abort(gone))).rejects.toThrow('went away')
    expect(await lab.get(ref)).toMatchObject({ status: 'stopped', command_line: '' })
  })

  test.each([
    ['the node is stopped', (lab: RouterLab, ref: RouterRef) => lab.agent.nodes.stop(ref)],
    ['the node is deleted', (lab: RouterLab, ref: RouterRef) => lab.agent.nodes.remove(ref, { files: 'now' })],
    ['the project is deleted', (lab: RouterLab) => lab.agent.projects.remove(lab.projectId)],
    ['the project is closed', (lab: RouterLab) => lab.agent.projects.close(lab.projectId)],
  ])('ends at once when %s', async (_, end) => {
    const { lab, ref, answer, since } = await begun(50)
    await end(lab, ref)
    await expect(answer).rejects.toMatchObject({
      status: 409,
      message: 'The router ended while it was measured',
    })
    await requireClean(lab, since)
  })

  test('ends at once when its dynamips does', async () => {
    const { lab, ref, answer, since } = await begun(50)
    process.kill(lab.pids[0] ?? 0, 'SIGKILL')
    await expect(answer).rejects.toMatchObject({ status: 409, message: 'The router ended while it was measured' })
    const reason = 'The program ended by itself (signal SIGKILL)'
    await expect.poll(() => lab.get(ref)).toMatchObject({ status: 'stopped', status_reason: reason })
    await requireClean(lab, since)
  })

  test('ends with the service', async () => {
    const { lab, answer } = await begun(10 * hangMs)
    await lab.close()
    await expect(answer).rejects.toMatchObject({ status: 409, message: 'The service is stopping' })
    expect(lab.pids).toEqual([])
  })

  test.each([
    ['boot', 10 * hangMs],
    ['look at it', 50],
  ])('that takes too long is given up during the %s', async (_, boot) => {
    const lab = await RouterLab.open({ bounds: { boot, measurement: 1500 } })
    const ref = await lab.router(idling)
    const since = performance.now()
    await expect(lab.agent.nodes.action(ref, 'autoIdlePc', {})).rejects.toMatchObject({
      status: 408,
      message: 'The idle-PC value was not found within 1.5 s',
    })
    await requireClean(lab, since)
    expect(await lab.get(ref)).toMatchObject({ status: 'stopped' })
  })

  test('does not prevent reading or renaming the node, but refuses changes of the measured settings', async () => {
    const { lab, ref, answer } = await begun(10 * hangMs)
    const { nodes } = lab.agent
    expect(await nodes.update(ref, { name: 'R2' })).toMatchObject({ name: 'R2' })
    const other = await lab.router(idling)
    for (const change of [
      () => nodes.update(ref, { idlepc: '0x60008120' }),
      () => nodes.suspend(ref),
      () => nodes.reload(ref),
      () => nodes.duplicate(ref, other.node_id),
    ]) {
      await expect(change()).rejects.toMatchObject({ status: 409, message: expect.stringContaining('being measured') })
    }
    expect(await lab.get(ref)).toMatchObject({ status: 'started', idlepc: null })
    await nodes.stop(ref)
    await expect(answer).rejects.toMatchObject({ status: 409 })
    expect(await nodes.update(ref, { idlepc: '0x60008120' })).toMatchObject({ idlepc: '0x60008120' })
  })

  test('of a router that is suspended is refused', async () => {
    const lab = await RouterLab.open()
    const ref = await lab.router(idling)
    await lab.agent.nodes.start(ref)
    await lab.agent.nodes.suspend(ref)
    await expect(lab.agent.nodes.action(ref, 'idlePcProposals', {})).rejects.toMatchObject({
      status: 409,
      message: 'The router is suspended: resume it first',
    })
    expect(await lab.get(ref)).toMatchObject({ status: 'suspended' })
  })
})

describeWith(needsDynamips)('what dynamips finds', () => {
  test('a program that never idles has no value, and the tried values are reported', async () => {
    const { lab, ref, answer } = askedFor('busy')
    expect(await answer).toMatchObject({
      status: 409,
      message: expect.stringMatching(
        /^No idle-PC value was found for this image: .* 0x600080[0-9a-f]{2} \(\d{2,3} %\)$/,
      ),
    })
    expect(await lab.get(ref)).toMatchObject({ status: 'stopped', status_reason: null })
    expect([lab.pids, await lab.ports()]).toEqual([[], []])
  })

  test('a running router gets proposals, and keeps running unchanged', async () => {
    const { lab, ref, answer } = askedFor('proposed')
    const proposals = (await answer) as string[]
    expect(proposals.length).toBeGreaterThan(0)
    for (const it of proposals) expect(it).toMatch(/^0x60008(0|1)[0-9a-f]{2} \[\d+\]$/)
    expect(await lab.get(ref)).toMatchObject({ status: 'started', idlepc: idle })
    // It has its idle PC again, until that is taken from it.
    const load = async () => {
      const watch = watchLoad(lab.pids[0] ?? 0)
      await delay(400)
      return watch?.()
    }
    const soon = { timeout: hangMs }
    await expect.poll(load, soon).toBeLessThan(50)
    await lab.agent.nodes.update(ref, { idlepc: '' })
    // Others may want the processor now and then.
    await expect.poll(load, soon).toBeGreaterThan(90)
    await lab.agent.nodes.update(ref, { idlepc: idle })
    await expect.poll(load, soon).toBeLessThan(50)
  })
})
