/** What the commands of a Linux host set: its addresses by interface, and its routes. */
export interface LinuxSetup {
  /** With prefix lengths. */
  readonly addresses: readonly { readonly device: string; readonly address: string }[]
  readonly routes: readonly { readonly to: string; readonly via: string }[]
  /** Interfaces that ask for an address by DHCP. */
  readonly dhcp: readonly string[]
  /** Commands that are none of these. */
  readonly others: readonly string[]
}

/** Commands that have no effect where a node has its links from the start. */
const harmless = [
  /^ip (-\d )?l(ink)? set (dev )?\S+ (up|mtu \d+)( up)?$/,
  /^ifconfig \S+ up$/,
  /^ip (-\d )?r(oute)? del(ete)? default\b.*$/,
  /^sleep [\d.]+$/,
]
const address = /^ip (?:-[46] )?a(?:ddr|ddress)? a(?:dd)? (\S+\/\d+) dev (\S+)$/
const addressAfter = /^ip (?:-[46] )?a(?:ddr|ddress)? a(?:dd)? dev (\S+) (\S+\/\d+)$/
const ifconfig = /^ifconfig (\S+) (?:inet )?(\d+\.\d+\.\d+\.\d+) netmask (\d+\.\d+\.\d+\.\d+)(?: up)?$/
const ifconfigPrefix = /^ifconfig (\S+) (?:inet )?(\S+\/\d+)(?: up)?$/
const route = /^ip (?:-[46] )?r(?:oute)? (?:a(?:dd)?|replace|change) (\S+) via (\S+)(?: dev \S+)?$/
const oldRoute = /^route add default gw (\S+)(?: dev)?(?: \S+)?$/
const dhcp = /^(?:udhcpc|dhclient|dhcpcd)\b.*?\b([a-z]+\d+)\b.*$/

/** Reads commands as people write them into containerlab and startup scripts: one per line, or joined by `&&` and `;`. */
export function linuxSetup(commands: readonly string[]): LinuxSetup {
  const setup = { addresses: [], routes: [], dhcp: [], others: [] } as {
    addresses: { device: string; address: string }[]
    routes: { to: string; via: string }[]
    dhcp: string[]
    others: string[]
  }
  for (const command of commands.flatMap(simple)) {
    const line = command.replace(/^sudo /, '')
    const [, after, value] = addressAfter.exec(line) ?? []
    const [, text = value, device = after] = address.exec(line) ?? []
    const [, card, plain, mask] = ifconfig.exec(line) ?? []
    const [, prefixed, prefix] = ifconfigPrefix.exec(line) ?? []
    const [, to, via] = route.exec(line) ?? []
    const [, gateway] = oldRoute.exec(line) ?? []
    const [, asking] = dhcp.exec(line) ?? []
    if (text !== undefined && device !== undefined) setup.addresses.push({ device, address: text })
    else if (card !== undefined && plain !== undefined && mask !== undefined && lengthOf(mask) !== undefined)
      setup.addresses.push({ device: card, address: `${plain}/${lengthOf(mask)}` })
    else if (prefixed !== undefined && prefix !== undefined) setup.addresses.push({ device: prefixed, address: prefix })
    else if (to !== undefined && via !== undefined) setup.routes.push({ to, via })
    else if (gateway !== undefined) setup.routes.push({ to: 'default', via: gateway })
    else if (asking !== undefined) setup.dhcp.push(asking)
    else if (!harmless.some((it) => it.test(line))) setup.others.push(command)
  }
  return setup
}

/** The simple commands of a command line; what is inside of `sh -c` too. */
function simple(command: string): string[] {
  const [, , inner] = /^(?:\/bin\/)?(?:ba|a)?sh -c (["'])(.*)\1$/s.exec(command.trim()) ?? []
  return (inner ?? command)
    .split(/&&|;|\n/)
    .map((it) => it.trim().replaceAll(/\s+/g, ' '))
    .filter((it) => it !== '' && !it.startsWith('#'))
}

/** The length of the prefix of a network mask; undefined for a text that is none. */
function lengthOf(mask: string): number | undefined {
  const bits = mask
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('')
  return /^1*0*$/.test(bits) && bits.length === 32 ? bits.lastIndexOf('1') + 1 : undefined
}

const isV6 = (text: string): boolean => text.includes(':')

/** The startup script of a pc with one interface. `note` gets what a pc cannot have. */
export function pcScript(
  { addresses, routes, dhcp: asking, others }: LinuxSetup,
  note: (message: string) => void,
): string {
  const gateways = routes.filter(({ via }) => !isV6(via))
  const gateway = gateways.find(({ to }) => to === 'default' || to === '0.0.0.0/0') ?? gateways[0]
  for (const it of routes)
    if (it !== gateway) note(`the route to ${it.to} by ${it.via} is not imported: a pc has one gateway`)
  if (gateway !== undefined && gateway !== gateways.find(({ to }) => to === 'default' || to === '0.0.0.0/0'))
    note(`the route to ${gateway.to} by ${gateway.via} is the gateway of the pc, for all destinations`)
  for (const it of others) note(`the command ${JSON.stringify(it.slice(0, 80))} is not imported`)
  const [four, ...more] = addresses.filter((it) => !isV6(it.address))
  for (const it of more) note(`the address ${it.address} is not imported: a pc has one IPv4 address`)
  const lines = addresses.filter((it) => isV6(it.address)).map((it) => `ip ${it.address}`)
  if (four !== undefined) lines.unshift(`ip ${four.address}${gateway === undefined ? '' : ` ${gateway.via}`}`)
  else if (asking.length > 0) lines.unshift('ip dhcp')
  return lines.map((line) => `${line}\n`).join('')
}

/** The kernel command line of the guests of examples/guests (docs/machines.md), which says name and addresses. */
export function guestCommandLine(
  name: string,
  { addresses, routes, dhcp: asking, others }: LinuxSetup,
  note: (message: string) => void,
): string {
  const words = addresses.flatMap(({ device, address }) => (/^eth\d+$/.test(device) ? [`pb.${device}=${address}`] : []))
  for (const { device, address } of addresses)
    if (!/^eth\d+$/.test(device)) note(`the address ${address} of ${device} is not imported`)
  const gateway = routes.find(({ to }) => to === 'default')
  for (const it of routes) if (it !== gateway) note(`the route to ${it.to} by ${it.via} is not imported`)
  for (const device of asking) note(`DHCP on ${device} is not imported`)
  for (const it of others) note(`the command ${JSON.stringify(it.slice(0, 80))} is not imported`)
  const via = gateway === undefined ? [] : [`pb.via=${gateway.via}`]
  const host = `pb.host=${name.replaceAll(/[^A-Za-z0-9-]/g, '-')}`
  return ['console=ttyS0 quiet no_timer_check', host, ...words, ...via].join(' ')
}
