import { freshName, ip, Namespace, removeLater } from './namespace.ts'
import { TestService } from './service.ts'

/** How a router changes the source of what leaves its site. */
export type Nat =
  /** The port stays when it is free, as on most routers. */
  | 'same port'
  /** Each flow gets a port of its own. */
  | 'random port'

/** Of the networks for benchmarks (RFC 2544): networks for documentation stand for the Internet on some machines of CI systems. */
const network = '198.18.203'

/** A network between sites, with this host in it. */
export class Internet {
  readonly #space: Namespace
  #last = 0

  private constructor(space: Namespace) {
    this.#space = space
  }

  /** Of this host in it. */
  static readonly address = `${network}.1`

  static async make(): Promise<Internet> {
    const internet = new Internet(await Namespace.make())
    await internet.#space.ip('link add br0 type bridge')
    await internet.#space.ip('link set br0 up')
    await internet.connect(undefined)
    return internet
  }

  /** Connects this host or a namespace; its device, and its address. */
  async connect(space: Namespace | undefined): Promise<{ device: string; address: string }> {
    const device = freshName()
    await ip(`link add ${device} type veth peer name ${device} netns ${this.#space.name}`)
    if (space === undefined) removeLater(device)
    else await ip(`link set ${device} netns ${space.name}`)
    await this.#space.ip(`link set ${device} master br0 up`)
    const address = `${network}.${++this.#last}`
    const at = space === undefined ? ip : (args: string) => space.ip(args)
    await at(`addr add ${address}/24 dev ${device}`)
    await at(`link set ${device} up`)
    return { device, address }
  }

  /** A host without a router before it. */
  async host(): Promise<{ space: Namespace; address: string }> {
    const space = await Namespace.make()
    return { space, address: (await this.connect(space)).address }
  }
}

/** A network behind a router with NAT, which lets nothing in that was not asked for. All sites have the same addresses. */
export class Site {
  /** Of its router in the Internet. */
  readonly address: string
  readonly #router: Namespace
  readonly #outside: string
  #last = 9

  private constructor(router: Namespace, outside: string, address: string) {
    this.#router = router
    this.#outside = outside
    this.address = address
  }

  static async make(internet: Internet, nat: Nat): Promise<Site> {
    const router = await Namespace.make()
    const { device, address } = await internet.connect(router)
    await router.ip('link add br0 type bridge')
    await router.ip('addr add 192.168.1.1/24 dev br0')
    await router.ip('link set br0 up')
    await router.run('sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward')
    const rules = [
      `-t nat -A POSTROUTING -o ${device} -p udp -j MASQUERADE ${nat === 'random port' ? '--random-fully' : ''}`,
      `-t nat -A POSTROUTING -o ${device} -j MASQUERADE`,
      ...['INPUT', 'FORWARD'].flatMap((chain) => [
        `-A ${chain} -i ${device} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`,
        `-A ${chain} -i ${device} -j DROP`,
      ]),
    ]
    for (const rule of rules) await router.run('iptables', '-w', ...rule.trim().split(' '))
    return new Site(router, device, address)
  }

  /** Has its router forget all flows, as a restart would. */
  async forgetFlows(): Promise<void> {
    // Those that are masqueraded go with the device.
    await this.#router.ip(`link set ${this.#outside} down`)
    await this.#router.ip(`link set ${this.#outside} up`)
  }

  async host(): Promise<{ space: Namespace; address: string }> {
    const space = await Namespace.make()
    const device = freshName()
    await ip(`link add ${device} netns ${space.name} type veth peer name ${device} netns ${this.#router.name}`)
    await this.#router.ip(`link set ${device} master br0 up`)
    const address = `192.168.1.${++this.#last}`
    await space.address(device, `${address}/24`)
    await space.ip(`link set ${device} up`)
    await space.ip('route add default via 192.168.1.1')
    return { space, address }
  }
}

/** Starts a service on a host of its own. */
export const serviceIn = (space: Namespace, settings: Record<string, unknown>): Promise<TestService> =>
  TestService.start(settings, ['ip', 'netns', 'exec', space.name])
