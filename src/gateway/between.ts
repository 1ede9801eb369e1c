import { conflict, notFound } from '../errors.ts'
import { connectHost } from '../fleet/address.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { tunnelled } from '../model/compute.ts'
import type { Whereabouts } from './whereabouts.ts'

const loopback = '127.0.0.1'

/** The address at which the host of one project reaches that of another; see `Context.between`. */
export const between =
  (fleet: Fleet, whereabouts: Whereabouts) =>
  async (from: string, to: string): Promise<string> => {
    const [here, there] = await Promise.all([from, to].map((project) => whereabouts.find(project)))
    if (here === undefined || there === undefined) throw notFound('nodes: no compute has one of the projects')
    if (here.id === there.id) return loopback
    const { name, protocol, host } = await fleet.get(there.id)
    if (protocol !== tunnelled) return connectHost(host)
    throw conflict(
      `nodes: the compute ${name} has joined by itself, and no address of it is known; attach the NIOs with addresses of your own`,
    )
  }
