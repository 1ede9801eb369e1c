import { BlockList, isIPv6 } from 'node:net'
import { Type } from '@sinclair/typebox'
import { conflict } from '../../../../src/lib/errors/api-error.ts'

/** An address, or a network such as 10.0.0.0/8, in a setting. */
export const NetworkText = Type.String({
  pattern: '^(\\d{1,3}(\\.\\d{1,3}){3}(/\\d{1,2})?|[0-9a-fA-F]*:[0-9a-fA-F:.]*(/\\d{1,3})?)$',
  expects: 'an address or a network, such as 10.0.0.5 or fd00::/8',
})

/** The addresses and networks of a setting as a set. 409 for one that cannot be, such as 10.0.0.300 or 10.0.0.0/40. */
export function networkList(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    try {
      if (bits === undefined) list.addAddress(address, family)
      else list.addSubnet(address, Number(bits), family)
    } catch (cause) {
      throw conflict(`A setting contains ${entry}, which is not a valid network: correct it`, { cause: cause as Error })
    }
  }
  return list
}
