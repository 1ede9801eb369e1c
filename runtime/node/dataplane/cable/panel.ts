import { type Libc, linux } from '../../os/system/libc.ts'
import { requestValue, Scratch } from '../fast/scratch.ts'
import { attribute, attributesOf, Netlink } from './netlink.ts'

/** Messages and attributes of linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h and linux/tc_act/tc_mirred.h. */
const [newFilter, deleteFilter, getFilter] = [44, 45, 46]
const isNew = 0x600
const incoming = 0xffff_fff2
const allProtocols = 0x0300
const [kind, options] = [1, 2]
const [selector, actions] = [5, 7]
const [actionKind, actionOptions, actionStatistics] = [1, 2, 4]
const [mirredSettings, basicStatistics, packets64] = [2, 1, 8]
const [stolen, redirectsOut] = [4, 1]
/** The kernel takes the filter with the lower number. */
export const priorities = { throughSwitch: 1, throughKernel: 2 } as const

const text = (value: string): Uint8Array => Buffer.from(`${value}\0`)

/** Two devices of the namespace of a panel: the outer end of an adapter, and the TAP device that the switch has. */
export interface Plug {
  readonly panel: Panel
  readonly outer: number
  readonly tap: number
}

/** Frames that the kernel redirected, and their bytes without Ethernet headers. */
export interface Redirected {
  readonly frames: number
  readonly bytes: number
}

/**
 * The network namespace in which the adapters of containers are joined, by its descriptors (drivers/container/panel-script.ts). Who has
 * it may join them without being root.
 */
export class Panel {
  /** Of its user namespace and of its network namespace, for the programs that make adapters in it. */
  readonly descriptors: readonly [user: number, net: number]
  readonly #libc: Libc
  readonly #socket: number
  readonly #netlink: Netlink
  readonly #scratch: Scratch

  constructor(libc: Libc, descriptors: { readonly user: number; readonly net: number; readonly netlink: number }) {
    this.#libc = libc
    this.#socket = descriptors.netlink
    this.descriptors = [descriptors.user, descriptors.net]
    this.#netlink = new Netlink(libc, descriptors.netlink)
    this.#scratch = new Scratch(libc)
  }

  /** The devices of an adapter whose TAP device has the descriptor; undefined: it is in another namespace. */
  plugOf(descriptor: number): Plug | undefined {
    this.#scratch.clear(40)
    if (this.#libc.ioctl(descriptor, linux.TUNGETIFF, this.#scratch.address) < 0) return undefined
    const name = /^t\d+\.\d+(?=\0)/.exec(Buffer.from(this.#scratch.bytes.subarray(0, 16)).toString('latin1'))?.[0]
    if (name === undefined) return undefined
    const [tap, outer] = [name, name.replace('t', 'p')].map((it) => this.#indexOf(it))
    return tap === undefined || outer === undefined ? undefined : { panel: this, outer, tap }
  }

  /** Redirects the frames that come to a device out of another one. */
  redirect(from: number, priority: number, to: number): Promise<void> {
    const settings = new Uint8Array(28)
    const view = new DataView(settings.buffer)
    // struct tc_mirred { u32 index, capab; int action, refcnt, bindcnt, eaction; u32 ifindex; }
    view.setInt32(8, stolen, true)
    view.setInt32(20, redirectsOut, true)
    view.setUint32(24, to, true)
    // struct tc_u32_sel { u8 flags, offshift, nkeys; ... } with one key that every frame has.
    const every = Uint8Array.from([1, 0, 1, ...new Array<number>(29).fill(0)])
    const mirred = [
      attribute(actionKind, text('mirred')),
      attribute(actionOptions, attribute(mirredSettings, settings)),
    ]
    const body = Buffer.concat([
      filterHeader(from, priority),
      attribute(kind, text('u32')),
      attribute(options, attribute(selector, every), attribute(actions, attribute(1, ...mirred))),
    ])
    return this.#netlink.change('redirect', newFilter, isNew, body)
  }

  /** Removes the redirection with the priority. */
  leave(from: number, priority: number): Promise<void> {
    return this.#netlink.change('leave', deleteFilter, 0, filterHeader(from, priority))
  }

  /** What was redirected with the priority since `redirect`; undefined: nothing is. */
  async redirected(from: number, priority: number): Promise<Redirected | undefined> {
    for (const { body } of await this.#netlink.list('list', getFilter, filterHeader(from, priority))) {
      if (body.getInt32(4, true) !== from || body.getUint32(16, true) >>> 16 !== priority) continue
      const first = within(within(attributesOf(body, 20), options), actions)?.get(1)
      const counted = first && within(attributesOf(first, 0), actionStatistics)
      const basic = counted?.get(basicStatistics)
      if (basic === undefined) continue
      const frames = counted?.get(packets64)?.getBigUint64(0, true) ?? basic.getUint32(8, true)
      return { frames: Number(frames), bytes: Number(basic.getBigUint64(0, true)) }
    }
    return undefined
  }

  #indexOf(device: string): number | undefined {
    this.#scratch.request(device, 0)
    if (this.#libc.ioctl(this.#socket, linux.SIOCGIFINDEX, this.#scratch.address) < 0) return undefined
    return this.#scratch.view.getInt32(requestValue, true)
  }
}

/** struct tcmsg { u8 family; int ifindex; u32 handle, parent, info; } */
function filterHeader(device: number, priority: number): Uint8Array {
  const bytes = new Uint8Array(20)
  const view = new DataView(bytes.buffer)
  view.setInt32(4, device, true)
  view.setUint32(12, incoming, true)
  view.setUint32(16, ((priority << 16) | allProtocols) >>> 0, true)
  return bytes
}

const within = (attributes: Map<number, DataView> | undefined, type: number): Map<number, DataView> | undefined => {
  const inner = attributes?.get(type)
  return inner && attributesOf(inner, 0)
}
