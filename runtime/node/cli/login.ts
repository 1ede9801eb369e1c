import type { Patchbay } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { isLoopbackHost } from '../../../src/compute/remote/address.ts'
import { loginPath, removeLogin, writeLogin } from '../engine/storage/login-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { configurationDirectory } from '../service/config/directory.ts'
import { clientAt, loginOf, originOf } from './client.ts'
import type { CommandInput, outputFlags } from './command.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { secretInput } from './secret-input.ts'

/** `patchbay login [URL]`: keeps a service and its token for all commands, after the service has let the token in. */
export async function login({ args: [word], signal }: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const { env } = process
  const configuration = configurationDirectory(env)
  const named = word ?? (env.PATCHBAY_SERVER || undefined) ?? loginOf(env)?.server
  if (named === undefined)
    throw wrongArguments('expected URL: the address of the service, such as https://labs.example.org')
  const server = originOf(named, word === undefined ? 'PATCHBAY_SERVER' : 'URL')
  // Before a token is typed: the address may be wrong, and a service may want none.
  const isFree = await letsIn(clientAt({ url: server, token: undefined }), signal)
  if (!isFree && server.startsWith('http:') && !isLoopbackHost(new URL(server).hostname.replace(/^\[|\]$/g, '')))
    process.stderr.write(
      `patchbay: the connection to ${server} is not encrypted; others on the network can read the token\n`,
    )
  const token = isFree ? undefined : await tokenFor(server)
  if (token !== undefined && !(await letsIn(clientAt({ url: server, token }), signal)))
    throw new CommandError(exits.noService, [
      {
        message: `${server} does not accept this token; nothing was saved`,
        hint: '"patchbay tokens create" creates one',
      },
    ])
  try {
    writeLogin(configuration, { server, token })
  } catch (error) {
    throw new CommandError(exits.failed, `${loginPath(configuration)} cannot be written: ${reasonOf(error)}`)
  }
  return {
    json: { server, has_token: token !== undefined, file: loginPath(configuration) },
    text: () =>
      token === undefined
        ? `Commands now use ${server}, which needs no token; "patchbay logout" reverts this`
        : `Logged in to ${server}; "patchbay logout" reverts this`,
  }
}

/** `patchbay logout`: forgets the service and its token. */
export async function logout(_: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const configuration = configurationDirectory(process.env)
  let server: string | undefined
  try {
    server = loginOf(process.env)?.server
  } catch {
    // A damaged file is removed, too.
  }
  let isGone: boolean
  try {
    isGone = removeLogin(configuration)
  } catch (error) {
    throw new CommandError(exits.failed, `${loginPath(configuration)} cannot be removed: ${reasonOf(error)}`)
  }
  return {
    json: { logged_out: isGone, server },
    text: () => (isGone ? `Logged out${server === undefined ? '' : ` of ${server}`}` : 'Not logged in; nothing to do'),
  }
}

/** Whether a service answers with the credentials that a client has. */
async function letsIn(client: Patchbay, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call('GET /v2/version', { signal })
    return true
  } catch (error) {
    if (error instanceof PatchbayError && (error.status === 401 || error.status === 403)) return false
    throw error
  }
}

async function tokenFor(server: string): Promise<string> {
  const token = await secretInput(`Token of ${server}`, 'a token')
  // RFC 6750 2.1: the characters of a Bearer token.
  if (!/^[\w.~+/-]+=*$/.test(token))
    throw wrongArguments('expected a token on standard input: letters, digits and -._~+/, then =; nothing was sent')
  return token
}
