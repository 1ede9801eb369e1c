import { badRequest } from '../../lib/errors/api-error.ts'
import type { ComputeRecord } from '../../model/compute.ts'

/** A host as it stands in a URL: IPv6 in brackets and its short form. Undefined for what cannot be one. */
function urlHost(host: string): string | undefined {
  const bare = unbracketed(host)
  const text = `http://${bare.includes(':') ? `[${bare}]` : bare}`
  return URL.canParse(text) ? new URL(text).hostname : undefined
}

/** An address as it is saved, without brackets; 400 for other text, and for an address that no compute may have. */
export function hostOfAddress(text: string): string {
  const host = urlHost(text)
  if (host === undefined) throw badRequest(`host: expected a host name or an address, got ${JSON.stringify(text)}`)
  if (isForbidden(host)) {
    throw badRequest(`host: ${text} is a link-local, multicast or cloud metadata address; no compute can have it`)
  }
  return unbracketed(text)
}

/** `{protocol}://{host}:{port}`. The addresses that mean "any" are those of this machine. */
export function originOf({ protocol, host, port }: Pick<ComputeRecord, 'protocol' | 'host' | 'port'>): string {
  return `${protocol}://${reachable(urlHost(host) ?? host)}:${port}`
}

/** The host to connect to, without brackets. */
export const connectHost = (host: string): string => unbracketed(reachable(urlHost(host) ?? host))

/** Whether a host, as `connectHost` gives it, means the machine that asks. */
export const isLoopbackHost = (host: string): boolean => /^(localhost\.?|127(\.\d{1,3}){3}|::1)$/i.test(host)

/** The default name of a compute: its address, with the user unless that is too long. */
export function computeNameOf(record: Pick<ComputeRecord, 'name' | 'protocol' | 'host' | 'port' | 'user'>): string {
  const { name, protocol, host, port, user } = record
  if (name !== null) return name
  const who = user === null ? '' : `${user.length > 14 ? `${user.slice(0, 11)}...` : user}@`
  return `${protocol}://${who}${host.includes(':') ? `[${host}]` : host}:${port}`
}

const unbracketed = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')
const reachable = (host: string): string => (host === '0.0.0.0' ? '127.0.0.1' : host === '[::]' ? '[::1]' : host)

/** Hosts of the metadata services of cloud providers, which hand out credentials of the machine. */
const metadataHosts = new Set(['metadata.google.internal', '100.100.100.200', '168.63.129.16', '192.0.0.192'])

/**
 * Whether an address is forbidden for computes: link-local addresses (metadata services of clouds among them), other addresses of metadata
 * services, and multicast. The host is that of a URL, or an address to which a name was resolved.
 */
export function isForbidden(host: string): boolean {
  const name = unbracketed(host).replace(/%.*$/, '').toLowerCase().replace(/\.$/, '')
  if (metadataHosts.has(name)) return true
  if (!name.includes(':')) return isForbidden4(name)
  const canonical = urlHost(name)
  return canonical === undefined || isForbidden6(groupsOf(unbracketed(canonical)))
}

/** Whether an IP address means the host itself, or none: loopback (127.0.0.0/8, ::1), 0.0.0.0/8 and ::. */
export function isOwnAddress(address: string): boolean {
  if (!address.includes(':')) return /^(0|127)\./.test(address)
  const canonical = urlHost(address)
  const groups = canonical === undefined ? [] : groupsOf(unbracketed(canonical))
  // ::1 and :: have the form of IPv4-compatible addresses of 0.0.0.0/8 (RFC 4291, 2.5.5.1).
  const inner = embedded(groups, groups[0] ?? 0, groups[1] ?? 0, groups[2] ?? 0)
  return inner !== undefined && isOwnAddress(inner)
}

function isForbidden4(address: string): boolean {
  const [, a, b] = /^(\d{1,3})\.(\d{1,3})\.\d{1,3}\.\d{1,3}$/.exec(address) ?? []
  const first = Number(a)
  return (first === 169 && b === '254') || first >= 224
}

function isForbidden6(groups: readonly number[]): boolean {
  const [first = 0, second = 0, third = 0] = groups
  // fe80::/10 and ff00::/8.
  if ((first & 0xffc0) === 0xfe80 || (first & 0xff00) === 0xff00) return true
  // fd00:ec2::/32 and fd20:ce::254.
  if ((first === 0xfd00 && second === 0xec2) || (first === 0xfd20 && second === 0xce)) return true
  const inner = embedded(groups, first, second, third)
  return inner !== undefined && isForbidden(inner)
}

/** The IPv4 address that an IPv6 one stands for: mapped, compatible, translated (64:ff9b::/96) or 6to4. */
function embedded(groups: readonly number[], first: number, second: number, third: number): string | undefined {
  const text = (high: number, low: number) => [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
  if (first === 0x2002) return text(second, third)
  const isTranslated = first === 0x64 && second === 0xff9b
  const before = groups.slice(isTranslated ? 2 : 0, 5)
  const isMapped = before.every((group) => group === 0) && [0, 0xffff].includes(groups[5] ?? 0)
  return isMapped ? text(groups[6] ?? 0, groups[7] ?? 0) : undefined
}

/** The eight groups of a canonical IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const [front = [], back] = address
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))))
  if (back === undefined) return front
  return [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
}
