import { lookup } from 'node:dns'
import { Agent as HttpAgent, request as http } from 'node:http'
import { Agent as HttpsAgent, request as https } from 'node:https'
import type { LookupFunction } from 'node:net'
import { connectHost, isForbidden } from '../../../../src/compute/remote/address.ts'
import type { ComputeAddress, Transport } from '../../../../src/compute/remote/transport.ts'
import { answered, rawHeaders } from '../http/wire-request.ts'
import { ownHeader } from './own-requests.ts'

/** Connections to a compute that wait for another request: a gateway's clients come together. */
const maxIdle = 64

/**
 * Requests to computes by node:http. Not `fetch`: that ends a body that brings nothing for five minutes, cannot say whether a
 * compute was reached, and looks names up where an address that is forbidden cannot be seen.
 */
export function httpTransport(): { readonly transport: Transport; close(): void } {
  const options = { keepAlive: true, maxFreeSockets: maxIdle }
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  const transport: Transport = (address) => {
    const { host, port, lookup } = targetOf(address)
    const [begin, agent] = address.protocol === 'https' ? [https, agents.https] : [http, agents.http]
    const own = ['Host', `${host.includes(':') ? `[${host}]` : host}:${port}`, ...ownHeader]
    return (outgoing) => {
      const { method, path } = outgoing
      const request = () => begin({ host, port, lookup, agent, method, path, headers: rawHeaders(own, outgoing) })
      return answered(request, outgoing, address.protocol)
    }
  }
  return {
    transport,
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** The options of node:http for the address of a compute. */
export const targetOf = ({ host, port }: ComputeAddress) => ({ host: connectHost(host), port, lookup: guarded(lookup) })

/** A lookup without the addresses that no compute can have: a name may lead to any. */
export const guarded =
  (lookUp: typeof lookup): LookupFunction =>
  (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '')
      const allowed = found.filter(({ address }) => !isForbidden(address))
      const [first] = allowed
      if (first === undefined) {
        return callback(new Error(`${hostname} resolves to an address that no compute can have`), '')
      }
      if (options.all === true) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
  }
