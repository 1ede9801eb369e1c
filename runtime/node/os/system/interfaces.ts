import { existsSync, readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { NetworkInterface } from '../../../../src/model/host.ts'

const specialNames = /^(lo|docker|br-|veth|virbr|vnet|vmnet|vboxnet|cni|flannel|podman|lxc|lxd|tailscale|wg)/

/** Whether labs seldom use an interface: loopback, a bridge or an end of a container engine, a tunnel. */
export const isSpecialInterface = (name: string): boolean => specialNames.test(name)

/** The network interfaces of this host by name, including those without an address. */
export function listInterfaces(): NetworkInterface[] {
  const addresses = networkInterfaces()
  const names = new Set([...Object.keys(addresses), ...linkNames()])
  return [...names].sort().map((name) => {
    const all = addresses[name] ?? []
    const ipv4 = all.find(({ family }) => family === 'IPv4')
    return {
      id: name,
      name,
      ip_address: ipv4?.address ?? '',
      netmask: ipv4?.netmask ?? '',
      mac_address: all[0]?.mac ?? '',
      // Only tun and tap devices have these flags (drivers/net/tun.c).
      type: existsSync(`/sys/class/net/${name}/tun_flags`) ? 'tap' : 'ethernet',
      special: isSpecialInterface(name),
    }
  })
}

function linkNames(): string[] {
  try {
    return readdirSync('/sys/class/net').filter((name) => name !== 'bonding_masters')
  } catch {
    return []
  }
}
