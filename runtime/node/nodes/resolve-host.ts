import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { badRequest } from '../../../src/errors.ts'

const resolveMs = 5000

/** The numeric address of a host; 400 when the name is not known. */
export async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  let timer: NodeJS.Timeout | undefined
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${resolveMs} ms`)), resolveMs)
    })
    return (await Promise.race([lookup(host, { family: 0, verbatim: false }), late])).address
  } catch (cause) {
    throw badRequest(`rhost: ${JSON.stringify(host)} cannot be resolved: ${(cause as Error).message}`, {
      cause: cause as Error,
    })
  } finally {
    clearTimeout(timer)
  }
}
