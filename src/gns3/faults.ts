/** The statuses of errors in GNS3 2.2; its controller fails on others. */
const known: ReadonlySet<number> = new Set([400, 401, 403, 404, 408, 409, 500, 503, 504])
const nearest: Readonly<Record<number, number>> = {
  ...{ 405: 404, 410: 404, 413: 409, 423: 409, 425: 503, 429: 503, 501: 409, 502: 503, 507: 409 },
}

export const theirStatus = (status: number): number =>
  status < 400 || known.has(status) ? status : (nearest[status] ?? (status < 500 ? 400 : 503))

/** The body of an error. The member `exception` makes the controller of GNS3 upload the missing image. */
export function theirFault(status: number, body: unknown): Record<string, unknown> {
  const { message = '', image } = (body ?? {}) as { message?: unknown; image?: unknown }
  return {
    ...{ message, status: theirStatus(status) },
    ...(typeof image === 'string' && { image, exception: 'ImageMissingError' }),
  }
}
