/** A MAC address in a schema. */
export const macText = {
  pattern: '^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$',
  expects: 'a MAC address such as 0c:12:34:56:78:00',
} as const

/** The settings of a node that give its adapters MAC addresses. */
export interface AddressSettings {
  /** That of the first adapter; the others follow. Absent: the service makes them. */
  readonly mac_address?: string | null
  readonly adapters?: number
  readonly custom_adapters?: readonly { readonly adapter_number: number; readonly mac_address?: string | null }[]
}

const example = 'give a unicast address, such as 0c:12:34:56:78:00'

/** Why no adapter can have an address (IEEE 802-2014, 8.2); undefined: it can. */
export function unicastIssue(mac: string): string | undefined {
  const digits = mac.replaceAll(/[^0-9a-fA-F]/g, '')
  if (/^0+$/.test(digits)) return `${mac} is not an adapter address: ${example}`
  if (/^f+$/i.test(digits)) return `${mac} is the broadcast address: ${example}`
  if ((Number.parseInt(digits.slice(0, 2), 16) & 1) === 1) return `${mac} is a multicast address: ${example}`
  return undefined
}

/** What is wrong with the addresses of the adapters of a machine, with the name of the field first. */
export function addressIssue({ mac_address, adapters = 1, custom_adapters = [] }: AddressSettings): string | undefined {
  const first = mac_address ? unicastIssue(mac_address) : undefined
  if (first !== undefined) return `mac_address: ${first}`
  const custom = new Map<number, string>()
  for (const { adapter_number, mac_address: own } of custom_adapters) {
    if (!own) continue
    const issue = unicastIssue(own)
    if (issue !== undefined) return `custom_adapters: adapter ${adapter_number}: ${issue}`
    custom.set(adapter_number, own.toLowerCase().replaceAll('-', ':'))
  }
  const found = new Map<string, number>()
  for (let number = 0; number < adapters; number++) {
    const own = custom.get(number)
    const mac = own ?? (mac_address ? macAfter(mac_address, number) : undefined)
    if (mac === undefined) continue
    const issue = own === undefined ? unicastIssue(mac) : undefined
    if (issue !== undefined)
      return `mac_address: adapter ${number} would get ${mac}, because the addresses count up from the first adapter: use a lower address`
    const other = found.get(mac)
    if (other !== undefined)
      return `${own === undefined ? 'mac_address' : 'custom_adapters'}: the adapters ${other} and ${number} would both have ${mac}: give each its own`
    found.set(mac, number)
  }
  return undefined
}

/** The address plus `count`, modulo 2^48. */
export function macAfter(mac: string, count: number): string {
  const number = (Number.parseInt(mac.replaceAll(/[:-]/g, ''), 16) + count) % 2 ** 48
  return number
    .toString(16)
    .padStart(12, '0')
    .replace(/(..)(?=.)/g, '$1:')
}

/** The address of an adapter by that of the first one; null where a node does not say it. */
export const macOfAdapter = (first: unknown, adapter: number): string | null =>
  typeof first === 'string' && first !== '' ? macAfter(first, adapter) : null

interface OwnAddress {
  readonly adapter_number: number
  readonly mac_address?: string | null
}

/** The custom adapters of a copy: those of its source, with the custom MAC addresses of the copy and none of the source. */
export function withOwnAddresses<A extends OwnAddress>(
  { adapters, custom_adapters }: { readonly adapters: number; readonly custom_adapters: readonly A[] },
  own: readonly A[],
): (A | OwnAddress)[] {
  const addresses = new Map(own.map(({ adapter_number, mac_address }) => [adapter_number, mac_address]))
  const copied = custom_adapters.map((adapter) => {
    const { mac_address: _, ...rest } = adapter
    const mac_address = addresses.get(adapter.adapter_number)
    return mac_address == null ? (rest as A) : { ...adapter, mac_address }
  })
  const numbers = new Set(copied.map(({ adapter_number }) => adapter_number))
  const others = own.flatMap(({ adapter_number, mac_address }) =>
    mac_address == null || adapter_number >= adapters || numbers.has(adapter_number)
      ? []
      : [{ adapter_number, mac_address }],
  )
  return [...copied, ...others]
}
