import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { badRequest, forbidden } from '../../../../src/lib/errors/api-error.ts'
import { reasonOf } from '../../os/system/error-reason.ts'

const resolveMs = 5000

/** The numeric address of a host; 400 when the name is not known. */
export async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  const late = (): never => {
    throw new Error(`no answer within ${resolveMs} ms`)
  }
  try {
    return (await withTimeout(lookup(host, { family: 0, verbatim: false }), resolveMs, late)).address
  } catch (cause) {
    const why = `cannot be resolved: ${reasonOf(cause)}; expected an IP address, or a name that this host can resolve`
    throw badRequest(`rhost: ${JSON.stringify(host)} ${why}`, { cause: cause as Error })
  }
}

const linkLocal = new BlockList()
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4')
linkLocal.addSubnet('fe80::', 10, 'ipv6')

/**
 * 403 for a link-local address (RFC 3927, RFC 4291 section 2.5.6): the metadata service of a cloud, which hands out credentials of the
 * machine, has such an address. The other end of a link never has one.
 */
export function refuseLinkLocal(address: string): void {
  const [plain = ''] = address.split('%')
  if (!linkLocal.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')) return
  throw forbidden(`rhost: ${address} is a link-local address, which only local mode allows`)
}
