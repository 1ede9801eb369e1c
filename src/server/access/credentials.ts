import { textOfBytes } from '../../lib/http/header-text.ts'

/** The credentials of a request, but for a ticket. */
export type Credentials =
  | { readonly kind: 'bearer'; readonly token: string }
  /** `pair` is `user:password`. */
  | { readonly kind: 'basic'; readonly pair: string; readonly user: string; readonly password: string }
  /** An Authorization that has none of these forms. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none' }

/** The credentials of a request, unchecked. */
export const credentialsOf = ({ headers }: Request): Credentials => credentialsIn(headers.get('authorization'))

/** The credentials in an Authorization header, unchecked. */
export function credentialsIn(authorization: string | null): Credentials {
  if (authorization === null) return { kind: 'none' }
  const [, scheme = '', value = ''] = /^(\w+)[ \t]+([^ \t]+)$/.exec(authorization) ?? []
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return { kind: 'bearer', token: textOfBytes(value) }
    case 'basic': {
      const pair = fromBase64(value)
      const colon = pair?.indexOf(':') ?? -1
      if (pair === undefined || colon < 0) return { kind: 'unknown' }
      return { kind: 'basic', pair, user: pair.slice(0, colon), password: pair.slice(colon + 1) }
    }
    default:
      return { kind: 'unknown' }
  }
}

/** The ticket in the query. */
export const ticketOf = ({ url }: Request): string | undefined =>
  url.includes('ticket=') ? (new URL(url).searchParams.get('ticket') ?? undefined) : undefined

/** The token of a Bearer header. */
export function bearerOf(request: Request): string | undefined {
  const credentials = credentialsOf(request)
  return credentials.kind === 'bearer' ? credentials.token : undefined
}

/** Basic credentials are UTF-8 (RFC 7617), and Latin-1 from older clients (its appendix B). */
function fromBase64(text: string): string | undefined {
  try {
    return textOfBytes(atob(text))
  } catch {
    return undefined
  }
}
