/** The statuses of errors in GNS3 2.2; its controller fails on others. */
const known: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 409, 500, 503, 504])
const nearest: Readonly<Record<number, number>> = {
  410: 404,
  413: 409,
  423: 409,
  425: 503,
  429: 503,
  501: 409,
  502: 503,
  507: 409,
}

const theirStatus = (status: number): number =>
  status < 400 || known.has(status) ? status : (nearest[status] ?? (status < 500 ? 400 : 503))

/** An error in GNS3 2.2 that has another status or text there. */
interface Rule {
  /** The code of the error (`X-Patchbay-Error`); absent: any. */
  readonly code?: string
  /** The method and the path, in our words; absent: any. */
  readonly at?: RegExp
  readonly status?: number
  readonly message?: string
}

const rules: readonly Rule[] = [
  { code: 'no-such-path', message: '404: Not Found' },
  { code: 'no-such-file', message: '404: Not Found' },
  { code: 'method-not-allowed', status: 405, message: '405: Method Not Allowed' },
  { code: 'ports-do-not-fit', status: 409 },
  { code: 'project-closed', at: /^\w+ \/v2\/projects\//, status: 403 },
  { code: 'forbidden', at: /^DELETE \/v2\/templates\//, status: 409 },
]

/** The status and the body of an error. The member `exception` makes the controller of GNS3 upload the missing image. */
export function theirFault(
  status: number,
  body: unknown,
  { code, at, translate }: { code: string | undefined; at: string; translate: (message: string) => string },
): { status: number; body: Record<string, unknown> } {
  const { message = '', image } = (body ?? {}) as { message?: unknown; image?: unknown }
  const rule = rules.find((it) => (it.code ?? code) === code && (it.at === undefined || it.at.test(at)))
  const theirs = rule?.status ?? theirStatus(status)
  return {
    status: theirs,
    body: {
      message: rule?.message ?? (typeof message === 'string' ? translate(message) : message),
      status: theirs,
      ...(typeof image === 'string' && { image, exception: 'ImageMissingError' }),
    },
  }
}
