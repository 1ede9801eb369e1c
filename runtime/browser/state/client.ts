import { Patchbay, PatchbayError } from '../../../src/client/patchbay.ts'
import { repeatingFetch } from '../../../src/compute/remote/transport.ts'
import { organizationHeader } from '../../../src/model/access/organization-header.ts'
import { notify, notifyError } from './notices.ts'
import { isOutage } from './outage.ts'
import { session } from './session.ts'

/** A request of the page. When it is refused with 401, the page asks for credentials. */
export async function send(url: string, init: RequestInit, ask: typeof fetchOf = fetchOf): Promise<Response> {
  const response = await ask(url, init)
  if (response.status === 401 && !url.endsWith('/v2/session')) session.value = null
  return response
}

const fetchOf = repeatingFetch((url, init) => fetch(url, init))

/** The client of the service of this page. The browser adds the cookie of the session. */
export const client = new Patchbay({ server: location.origin, fetch: send })

/** Time between two tries to ask who the user is, ms. */
const recognizeMs = 3000

/** Asks the service who the user is, until it answers. */
export async function recognize(): Promise<void> {
  for (;;) {
    try {
      session.value = await client.call('GET /v2/session')
      return
    } catch (error) {
      if (error instanceof PatchbayError && error.status === 401) session.value = null
      else if (isOutage(error)) notify('warning', 'The service does not answer. Trying again …')
      else notifyError(error)
      if (!isOutage(error)) return
    }
    await new Promise((resolve) => setTimeout(resolve, recognizeMs))
  }
}

/** The organization that the address of the page names (`/?organization=ID`): the administrator of a gateway logs in there. */
export const namedOrganization = new URLSearchParams(location.search).get('organization') || undefined

/** Logs in. Rejects with the reason of a refusal. */
export async function logIn(
  given: { readonly token: string } | { readonly user: string; readonly password: string },
): Promise<void> {
  const headers = namedOrganization === undefined ? {} : { [organizationHeader]: namedOrganization }
  session.value = await client.call('POST /v2/session', { body: given, headers })
}

export async function logOut(): Promise<void> {
  await client.call('DELETE /v2/session')
  session.value = null
}
