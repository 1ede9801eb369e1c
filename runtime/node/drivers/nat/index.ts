import { Type } from '@sinclair/typebox'
import { nat } from '../../../../src/model/kinds/nat.ts'
import { NetworkText } from '../../os/host/networks.ts'
import { ok, preventing, warning } from '../../os/programs/checks.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import type { NodeDriver } from '../node-driver.ts'
import { libslirpInstall } from './libslirp.ts'
import type { NatProperties } from './properties.ts'

const settings = {
  reach: Type.Array(NetworkText, {
    default: [],
    description:
      'Addresses and networks that guests of nats may reach although they belong to the host or, outside local mode, are private',
    reload: true,
  }),
}

/** How this host runs nats. */
export const natDriver: NodeDriver<typeof nat, typeof settings, NatProperties> = {
  descriptor: nat,
  settings,
  doctor: async () => [await libslirpCheck()],
  open: async (host) => new (await import('./nat.ts')).NatKind(host),
}

async function libslirpCheck() {
  try {
    return ok('libslirp', (await import('./libslirp.ts')).libslirpVersion())
  } catch (error) {
    const found = `cannot be loaded (${reasonOf(error)}); for nat nodes`
    return preventing(warning('libslirp', found, libslirpInstall), nat.name)
  }
}
