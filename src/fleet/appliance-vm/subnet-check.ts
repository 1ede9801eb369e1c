import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { readJson } from '../../compute/remote/answer.ts'
import { ignore } from '../../lib/async/ignore.ts'
import type { ApplianceVmRecord } from '../../model/appliance-vm.ts'
import { applianceId, localId } from '../../model/compute.ts'
import { NetworkInterface } from '../../model/host.ts'
import type { Fleet } from '../pool/fleet.ts'

const maxBytes = 1 << 20
const askMs = 20_000
const Interfaces = Type.Array(Type.Pick(NetworkInterface, ['ip_address', 'netmask']))

/** Warns after `ms` when the VM is not in the network of this service; the returned function cancels the check. */
export function checkSubnetLater(fleet: Fleet, { vmname }: ApplianceVmRecord, ms: number): () => void {
  // Without health checks no timer lasts that long.
  if (!fleet.hasUpkeep) return () => {}
  const over = new AbortController()
  const check = async () => {
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(askMs)])
    const [here, there] = await Promise.all([localId, applianceId].map((id) => networkOf(fleet, id, signal)))
    if (over.signal.aborted || here === undefined || there === undefined || here.network === there.network) return
    fleet.warn(
      `The appliance VM ${JSON.stringify(vmname)} (${there.text}) is not in the network of this service (${here.text}): links ` +
        'between their nodes cannot work. Set host to an address of this machine in the network of the VM',
    )
  }
  const timer = setTimeout(() => void check().catch(ignore('without an answer there is nothing to warn of')), ms)
  return () => {
    clearTimeout(timer)
    over.abort()
  }
}

/** The network of the registered address of a compute, from its list of interfaces; undefined for an address outside the list. */
async function networkOf(
  fleet: Fleet,
  id: string,
  signal: AbortSignal,
): Promise<{ network: string; text: string } | undefined> {
  const origin = fleet.originOf(id)
  if (origin === undefined) return undefined
  const host = new URL(origin).hostname
  const path = '/v2/compute/network/interfaces'
  const response = await fleet.send(id, { method: 'GET', path, headers: {}, body: null, signal })
  const said = await readJson(response, maxBytes)
  const own = Check(Interfaces, said) ? said.find(({ ip_address }) => ip_address === host) : undefined
  const [address, mask] = [numberOf(host), numberOf(own?.netmask ?? '')]
  if (address === undefined || mask === undefined) return undefined
  return { network: `${(address & mask) >>> 0}/${mask}`, text: `${host}, netmask ${own?.netmask}` }
}

/** The number of an IPv4 address; undefined for other texts. */
function numberOf(text: string): number | undefined {
  const parts = /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) ? text.split('.').map(Number) : []
  if (parts.length !== 4 || parts.some((part) => part > 255)) return undefined
  return parts.reduce((number, part) => ((number << 8) | part) >>> 0, 0)
}
