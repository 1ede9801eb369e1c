import { Patchbay, type PatchbayOptions } from '../../../src/client/patchbay.ts'
import { runningService } from '../storage/service-file.ts'
import type { Asking } from './command.ts'
import { dataDirectory } from './data-directory.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'

/** Where a command sends its calls. */
interface Service {
  readonly url: string
  readonly token: string | undefined
}

/** The client of the service that a command asks. CommandError 5 when none is named and none runs. */
export async function clientOf(
  flags: Pick<Asking, 'server'>,
  more: Pick<PatchbayOptions, 'WebSocket'> = {},
): Promise<Patchbay> {
  const service = await serviceOf(flags)
  if (service === undefined)
    throw new CommandError(exits.noService, [
      { message: 'no service runs here', hint: '"patchbay up FILE" starts one; --server URL names another' },
    ])
  return clientAt(service, more)
}

export const clientAt = ({ url, token }: Service, more: Pick<PatchbayOptions, 'WebSocket'> = {}): Patchbay =>
  new Patchbay({ server: url, token, ...more })

/** The service that a command asks: the named one, else the running one of this user. Undefined when none is named and none runs. */
export async function serviceOf({ server }: Pick<Asking, 'server'>, env = process.env): Promise<Service | undefined> {
  const named = server ?? (env.PATCHBAY_SERVER || undefined)
  const token = env.PATCHBAY_TOKEN || undefined
  if (named !== undefined) {
    const url = originOf(named)
    return { url, token }
  }
  const own = runningService(await dataDirectory(env))
  return own && { url: own.url, token: token ?? own.token }
}

/** 64 unless the text is the address of a service. */
export function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.username !== '')
    throw wrongArguments(`--server: expected an address such as http://127.0.0.1:3080, got ${JSON.stringify(text)}`)
  return url.origin
}
