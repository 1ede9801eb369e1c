import { ApiError, forbidden } from '../../lib/errors/api-error.ts'
import { hostOf } from '../../lib/http/host.ts'
import type { Role } from '../../model/access/access-token.ts'
import type { Identity } from '../../model/access/identity.ts'
import type { Endpoint } from '../http/endpoint.ts'
import type { Access } from './access.ts'

/** Whether the request came by TLS, to this service or to a proxy before it. */
export type IsSecure = boolean

/**
 * 403 for a request of a page that is neither our own nor of an allowed origin. The check uses headers that pages cannot forge
 * (Origin, RFC 6454; Sec-Fetch-*, W3C Fetch Metadata). It is for requests with ambient credentials. Programs send neither header.
 */
export function requireKnownSource(
  request: Request,
  { allowedOrigins }: Pick<Access, 'allowedOrigins'>,
  isSecure: IsSecure,
): void {
  const origin = request.headers.get('origin')
  if (origin !== null) {
    if (isOwnOrigin(origin, request, isSecure) || allowedOrigins.has(origin.toLowerCase())) return
    throw forbidden(
      `Origin: pages from ${origin.slice(0, 80)} may not use this service; add the origin to allowed_origins, or send ` +
        '"Authorization: Bearer" from the program that serves the page',
    )
  }
  // Browsers omit Origin in GETs that are not CORS requests, but send Sec-Fetch-Site.
  if (isFromOtherSite(request) && !isTopLevelNavigation(request)) {
    throw forbidden('Sec-Fetch-Site: pages from other sites may not use this service')
  }
}

/**
 * The checks that depend on the endpoint. 403 for a link of another site to anything but a page. 403 for a form, and for a GET with
 * an effect, from a browser that does not name the page. 415 for a JSON body that a form could have sent: browsers send forms
 * without a CORS preflight.
 */
export function requireDeliberate(
  request: Request,
  identity: Pick<Identity, 'ambient'>,
  { endpoint, role, isSecure }: { endpoint: Endpoint; role: Role; isSecure: IsSecure },
): void {
  if (identity.ambient !== true) return
  if (isFromOtherSite(request) && !request.headers.has('origin') && endpoint.page !== true) {
    throw forbidden(
      'Sec-Fetch-Site: links from other sites may only open pages of this service; type the address into the browser',
    )
  }
  if (isRead(request) && role !== 'read' && isUntoldBrowser(request) && !isOwnReferer(request, isSecure)) {
    throw forbidden(
      'Referer: this GET has side effects and the browser did not say which page sent it; use a Bearer token',
    )
  }
  const mayBeForm = !isRead(request) && (isFormMedia(request) || !request.headers.has('content-type'))
  if (mayBeForm && isOldBrowser(request) && !isOwnReferer(request, isSecure)) {
    throw forbidden(
      'Referer: this may be a form and the browser did not say which page sent it; use a newer browser or a Bearer token',
    )
  }
  const isBrowser = saysPage(request) || isOldBrowser(request)
  if (takesJson(endpoint) && isBrowser && isFormMedia(request)) {
    throw new ApiError(
      415,
      `Content-Type: expected application/json from a browser, got "${(request.headers.get('content-type') ?? '').slice(0, 80)}"`,
    )
  }
}

const isRead = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** Whether Sec-Fetch-Site names another site as the source of the request. */
export function isFromOtherSite({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  return site === 'cross-site' || site === 'same-site'
}

/** A followed link in a window or tab, not in a frame. */
function isTopLevelNavigation(request: Request): boolean {
  const { headers } = request
  const isDocument = (headers.get('sec-fetch-dest') ?? 'document') === 'document'
  return isRead(request) && headers.get('sec-fetch-mode') === 'navigate' && isDocument
}

/** Whether a browser sent the request, as far as its headers tell. */
export const isByBrowser = (request: Request): boolean => saysPage(request) || isUntoldBrowser(request)

/** Programs with the `fetch` of Node send Sec-Fetch-Mode alone. */
const saysPage = ({ headers }: Request): boolean =>
  headers.has('origin') || headers.has('sec-fetch-site') || headers.has('sec-fetch-dest')

/** Browsers send Sec-Fetch-* to https and to loopback only, and no Origin with a plain GET. */
const isUntoldBrowser = (request: Request): boolean =>
  !saysPage(request) && /^mozilla\//i.test(request.headers.get('user-agent') ?? '')

/**
 * A browser that sends no Origin even with a form, such as Firefox before 70 (bugzilla.mozilla.org/1424076). The name of the engine
 * identifies it: PowerShell and Qt call themselves Mozilla, too, and PowerShell sends every body as a form.
 */
const isOldBrowser = (request: Request): boolean =>
  isUntoldBrowser(request) && /gecko|webkit|trident|msie|presto/i.test(request.headers.get('user-agent') ?? '')

const takesJson = ({ body, bodyKind }: Endpoint): boolean => body !== undefined || bodyKind === 'ignored'

const isFormMedia = ({ headers }: Request): boolean =>
  /^\s*(text\/plain|multipart\/form-data|application\/x-www-form-urlencoded)\s*(;|,|$)/i.test(
    headers.get('content-type') ?? '',
  )

/** By TLS only https pages are our own. Without TLS both schemes are: an unknown proxy may have terminated TLS. */
function isOwnOrigin(origin: string, request: Request, isSecure: IsSecure): boolean {
  const host = hostOf(request)?.text
  const [, scheme, rest] = /^(https?):\/\/([^/]*)$/i.exec(origin) ?? []
  if (host === undefined || rest?.toLowerCase() !== host.toLowerCase()) return false
  return !isSecure || scheme?.toLowerCase() === 'https'
}

function isOwnReferer(request: Request, isSecure: IsSecure): boolean {
  const referer = request.headers.get('referer') ?? ''
  return URL.canParse(referer) && isOwnOrigin(new URL(referer).origin, request, isSecure)
}
