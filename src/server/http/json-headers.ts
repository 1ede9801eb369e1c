/**
 * Headers of every answer of JSON: no cache keeps what only some credentials may read, and no browser takes it for a page or a script. An answer with an
 * ETag has another Cache-Control.
 */
export const jsonHeaders = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
} as const
