import type { Identity } from '../../auth/identity.ts'
import { ApiError, forbidden } from '../../errors/api-error.ts'
import type { Role } from '../../model/access-token.ts'
import type { Endpoint } from '../endpoint.ts'
import type { Access } from './access.ts'
import { hostOf } from './host.ts'

/** Whether the request came by TLS, to this service or to a proxy before it. */
export type IsSecure = boolean

/**
 * Judges which page a request comes from, by the headers that browsers add and pages cannot forge (Origin, RFC 6454; Sec-Fetch-*, W3C
 * Fetch Metadata). For requests with credentials that a browser sends by itself, or with none. 403 for a page that is neither our own
 * nor of an allowed origin. Programs send neither header.
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
      `Origin: pages of ${origin.slice(0, 80)} may not use this service; add the origin to allowed_origins, or send ` +
        '"Authorization: Bearer" from the program that serves the page',
    )
  }
  // Browsers leave Origin out of GETs that are no CORS requests, but say where those come from.
  if (isForeignSite(request) && !isTopLevelNavigation(request)) {
    throw forbidden('Sec-Fetch-Site: a page of another site may not use this service')
  }
}

/**
 * The part of that judgement that depends on the endpoint. 403 for a link of another site to anything but a page, and for a GET that
 * changes something, or a form, where the browser does not say which page asks. 415 for a JSON body that a form could have sent:
 * browsers ask no permission (CORS preflight) for those.
 */
export function requireDeliberate(
  request: Request,
  identity: Pick<Identity, 'ambient'>,
  { endpoint, role, isSecure }: { endpoint: Endpoint; role: Role; isSecure: IsSecure },
): void {
  if (identity.ambient !== true) return
  if (isForeignSite(request) && !request.headers.has('origin') && endpoint.page !== true) {
    throw forbidden(
      'Sec-Fetch-Site: a link of another site leads to pages of this service only; enter the address by hand',
    )
  }
  if (isRead(request) && role !== 'read' && isUntoldBrowser(request) && !isOwnReferer(request, isSecure)) {
    throw forbidden(
      'Referer: this GET changes something, and the browser does not say which page asks; use a Bearer token',
    )
  }
  const mayBeForm = !isRead(request) && (isFormMedia(request) || !request.headers.has('content-type'))
  if (mayBeForm && isOldBrowser(request) && !isOwnReferer(request, isSecure)) {
    throw forbidden(
      'Referer: this may be a form, and the browser does not say of which page; use a newer browser or a Bearer token',
    )
  }
  const isBrowser = isByBrowser(request) || isOldBrowser(request)
  if (takesJson(endpoint) && isBrowser && isFormMedia(request)) {
    throw new ApiError(
      415,
      `Content-Type: expected application/json from a browser, got "${(request.headers.get('content-type') ?? '').slice(0, 80)}"`,
    )
  }
}

const isRead = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** Whether a page of another site had the request made, as far as Sec-Fetch-Site says it. */
export function isForeignSite({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  return site === 'cross-site' || site === 'same-site'
}

/** A link that was followed in a window of its own, and not in a frame. */
function isTopLevelNavigation(request: Request): boolean {
  const { headers } = request
  const isDocument = (headers.get('sec-fetch-dest') ?? 'document') === 'document'
  return isRead(request) && headers.get('sec-fetch-mode') === 'navigate' && isDocument
}

/** Programs with the `fetch` of Node send Sec-Fetch-Mode alone. */
const isByBrowser = ({ headers }: Request): boolean =>
  headers.has('origin') || headers.has('sec-fetch-site') || headers.has('sec-fetch-dest')

/** Browsers send Sec-Fetch-* to https and to loopback only, and no Origin with a plain GET. */
const isUntoldBrowser = (request: Request): boolean =>
  !isByBrowser(request) && /^mozilla\//i.test(request.headers.get('user-agent') ?? '')

/**
 * A browser that says nothing of the page even with a form, as Firefox before 70 (Origin with forms: bugzilla.mozilla.org/1424076).
 * Told by the engine: PowerShell and Qt call themselves Mozilla, too, and PowerShell says that every body is a form.
 */
const isOldBrowser = (request: Request): boolean =>
  isUntoldBrowser(request) && /gecko|webkit|trident|msie|presto/i.test(request.headers.get('user-agent') ?? '')

const takesJson = ({ body, bodyKind }: Endpoint): boolean => body !== undefined || bodyKind === 'ignored'

const isFormMedia = ({ headers }: Request): boolean =>
  /^\s*(text\/plain|multipart\/form-data|application\/x-www-form-urlencoded)\s*(;|,|$)/i.test(
    headers.get('content-type') ?? '',
  )

/** By TLS only pages that came by TLS are our own; without, a proxy that we do not know may have taken it off. */
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
