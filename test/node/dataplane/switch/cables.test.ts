import { closeSync, existsSync, fstatSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { NetlinkError } from '../../../../runtime/node/dataplane/cable/netlink.ts'
import { Panel, priorities } from '../../../../runtime/node/dataplane/cable/panel.ts'
import { FastPath } from '../../../../runtime/node/dataplane/fast/fast-path.ts'
import { loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { lanWith } from '../../../support/lan.ts'
import { freshName } from '../../../support/namespace.ts'
import { openTap } from '../../../support/open-tap.ts'
import { requireDevices } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

const noPermission = 1
const direct = { link_id: 'link', suspend: false, filters_ab: [], filters_ba: [] }

/**
 * A panel that knows which redirections its kernel has, by the adapters that they are from; as the kernel, it has several of one
 * priority. It refuses what it is told to.
 */
class RefusingPanel extends Panel {
  readonly redirections = new Map<number, (readonly [priority: number, to: number])[]>()
  refuses: (what: 'redirect' | 'leave', from: number, priority: number) => boolean = () => false
  /** Called when counters are asked for, which are there when the promise resolves. */
  onRead = () => {}
  isReadable: Promise<void> = Promise.resolve()
  #plugs = 0

  constructor() {
    super(loadLibc(), { user: -1, net: -1, netlink: -1 })
  }

  override plugOf() {
    const outer = ++this.#plugs
    const plug = { panel: this, outer, tap: 100 + outer }
    this.redirections.set(outer, [[priorities.throughSwitch, plug.tap]])
    return plug
  }

  override async redirect(from: number, priority: number, to: number): Promise<void> {
    if (this.refuses('redirect', from, priority)) throw new NetlinkError('redirect', noPermission)
    this.redirections.get(from)?.push([priority, to])
  }

  override async leave(from: number, priority: number): Promise<void> {
    if (this.refuses('leave', from, priority)) throw new NetlinkError('leave', noPermission)
    this.redirections.set(
      from,
      this.takes(from).filter(([it]) => it !== priority),
    )
  }

  override redirected = async () => {
    this.onRead()
    await this.isReadable
    return undefined
  }

  /** What the kernel does with the frames of an adapter: that with the lowest number, and of several the first. */
  takes = (from: number) => this.redirections.get(from) ?? []
}

/** Two guests with TAP devices in a panel, and a link between them. */
async function twoPlugged(panel: RefusingPanel) {
  const log = vi.fn<(message: string) => void>()
  const { lan: it, report } = await lanWith({ log }, 'fast')
  const devices = [freshName(), freshName()] as const
  for (const [index, key] of ['a', 'b'].entries()) {
    await it.open(key, { tap: true })
    await it.bindTap(key, openTap(devices[index] ?? ''), panel)
  }
  await it.joinAll([{ ...direct, ports: ['a', 'b'] }])
  return { it, log, devices, path: async () => (await report('a')).path }
}

const isDevice = (name: string) => existsSync(`/sys/class/net/${name}`)

describeWith(requireDevices())('a patch cable', () => {
  test('is unplugged with its device gone, even if the kernel refuses to end its redirections', async () => {
    const panel = new RefusingPanel()
    const { it, log, devices, path } = await twoPlugged(panel)
    await expect.poll(path).toBe('kernel')
    panel.refuses = () => true
    await it.unbindTap('a')
    await expect.poll(() => isDevice(devices[0])).toBe(false)
    expect(await path()).toBe('relay')
    expect(log).toHaveBeenCalledWith('a redirection between adapters stays: leave: errno 1')
    panel.refuses = () => false
    // The next guest of the port has a cable again.
    await it.bindTap('a', openTap(devices[0]), panel)
    await expect.poll(path).toBe('kernel')
    expect(panel.takes(2)).toEqual([[priorities.throughKernel, 3]])
    expect(panel.takes(3)).toEqual([[priorities.throughKernel, 2]])
  })

  test('leaves no half of itself where the kernel refuses the other half', async () => {
    const panel = new RefusingPanel()
    panel.refuses = (what, from) => what === 'redirect' && from === 2
    const { log, path } = await twoPlugged(panel)
    await vi.waitFor(() => expect(log).toHaveBeenCalledWith('a link stays with the switch: redirect: errno 1'))
    await vi.waitFor(() => expect(panel.takes(1)).toEqual([[priorities.throughSwitch, 101]]))
    expect(panel.takes(2)).toEqual([[priorities.throughSwitch, 102]])
    expect(await path()).toBe('relay')
  })

  test('that fails when it is bound has its descriptor left to the caller', async () => {
    const { lan: it } = await lanWith({}, 'fast')
    await it.open('a', { tap: true })
    const descriptor = openTap(freshName())
    vi.spyOn(FastPath.prototype, 'reset').mockRejectedValueOnce(new Error('refused'))
    await expect(it.bindTap('a', descriptor)).rejects.toThrow('refused')
    await it.unbindTap('a')
    closeSync(descriptor)
    expect(() => fstatSync(descriptor)).toThrow('EBADF')
    await it.bindTap('a', openTap(freshName()))
  })

  test('has no report of a port that is closed while the kernel is asked for its counters', async () => {
    const panel = new RefusingPanel()
    const { it, path } = await twoPlugged(panel)
    await expect.poll(path).toBe('kernel')
    let answer = () => {}
    panel.isReadable = new Promise((resolve) => {
      answer = resolve
    })
    const isAsked = new Promise<void>((resolve) => {
      panel.onRead = resolve
    })
    const [all, one] = [it.report(), it.report('a')]
    const refused = expect(one).rejects.toMatchObject({ code: 'unknown_key' })
    await isAsked
    const closed = it.close('a')
    await expect.poll(() => it.list().map(({ key }) => key)).toEqual(['b'])
    answer()
    expect((await all).map(({ key }) => key)).toEqual(['b'])
    await refused
    await closed
  })
})
