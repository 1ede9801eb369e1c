import { stringify } from 'yaml'
import { hostnameOf } from '../../lib/text/host-name.ts'
import { guestDomain } from '../../model/kinds/nat-subnet.ts'
import type { InventoryFormat, InventoryHost, LabInventory } from '../../model/lab/inventory.ts'

/** Where a node takes connections by SSH: a port of the host that leads to its port 22, else its address. */
function sshOf({ address, forwards }: InventoryHost): { host: string; port: number } | undefined {
  const forward = forwards.find(({ protocol, guest_port }) => protocol === 'tcp' && guest_port === 22)
  if (forward !== undefined) return { host: reachable(forward.host_address), port: forward.host_port }
  return address === null ? undefined : { host: address, port: 22 }
}

/** A port that is open at all addresses is reached by the loopback. */
const reachable = (address: string): string =>
  address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address

/** In YAML 1.1, too: Ansible and pyATS read this. */
const yaml = (value: unknown): string => stringify(value, { version: '1.2', compat: 'yaml-1.1', lineWidth: 0 })

/** A kind is a word: what is none could be markup. */
const isPlain = (kind: string): boolean => /^[\w-]{1,50}$/.test(kind)

/**
 * An inventory as text of a format. Ansible evaluates templates in variables, and pyATS markup such as `%ENV{}` in each text: no text of
 * the lab is in one, but its names as names of hosts and groups.
 */
export const inventoryTexts: Readonly<Record<Exclude<InventoryFormat, 'json'>, (inventory: LabInventory) => string>> = {
  ansible({ hosts }) {
    const reached = hosts.flatMap((host) => {
      const ssh = sshOf(host)
      return ssh === undefined ? [] : [{ host, ssh }]
    })
    const groups = [...new Set(reached.flatMap(({ host }) => host.groups))].sort()
    const variablesOf = ({ kind, address, console }: InventoryHost, ssh: { host: string; port: number }) => ({
      ansible_host: ssh.host,
      ...(ssh.port !== 22 && { ansible_port: ssh.port }),
      ...(isPlain(kind) && { patchbay_kind: kind }),
      patchbay_address: address,
      ...(console !== null && { patchbay_console_host: console.host, patchbay_console_port: console.port }),
    })
    return yaml({
      all: {
        hosts: Object.fromEntries(reached.map(({ host, ssh }) => [host.host_name, variablesOf(host, ssh)])),
        ...(groups.length > 0 && {
          children: Object.fromEntries(
            groups.map((group) => {
              const members = reached.filter(({ host }) => host.groups.includes(group))
              return [group, { hosts: Object.fromEntries(members.map(({ host }) => [host.host_name, {}])) }]
            }),
          ),
        }),
      },
    })
  },
  nornir({ hosts }) {
    const all = hosts.flatMap((host) => {
      const ssh = sshOf(host)
      if (ssh === undefined) return []
      const { kind, address, groups, console } = host
      const data = { kind, address, labels: groups, ...(console !== null && { console }) }
      return [[host.host_name, { hostname: ssh.host, port: ssh.port, data }] as const]
    })
    return yaml(Object.fromEntries(all))
  },
  pyats({ lab, hosts }) {
    const devices = hosts.flatMap((host) => {
      const { kind, console, host_name } = host
      const ssh = sshOf(host)
      const connections = {
        ...(console?.type === 'telnet' && { console: { protocol: 'telnet', ip: console.host, port: console.port } }),
        ...(ssh !== undefined && { ssh: { protocol: 'ssh', ip: ssh.host, port: ssh.port } }),
      }
      if (Object.keys(connections).length === 0) return []
      return [[host_name, { os: 'generic', type: isPlain(kind) ? kind : 'node', connections }] as const]
    })
    return yaml({ testbed: { name: hostnameOf(lab) }, devices: Object.fromEntries(devices) })
  },
  ssh({ lab, hosts }) {
    const domain = /^[A-Za-z0-9.-]{1,100}$/.test(lab) ? lab : guestDomain
    return hosts
      .flatMap((host) => {
        const ssh = sshOf(host)
        if (ssh === undefined) return []
        const full = `${host.host_name}.${domain}`
        const port = ssh.port === 22 ? [] : [`  Port ${ssh.port}`]
        // Several nodes may be at ports of one address: the keys of each are its own.
        return [
          [`Host ${host.host_name} ${full}`, `  HostName ${ssh.host}`, ...port, `  HostKeyAlias ${full}`, ''].join(
            '\n',
          ),
        ]
      })
      .join('\n')
  },
  hosts({ hosts }) {
    return hosts
      .flatMap(({ address, host_name }) =>
        address === null ? [] : [`${address} ${host_name} ${host_name}.${guestDomain}\n`],
      )
      .join('')
  },
}
