import { randomBytes } from 'node:crypto'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { readHere } from '../../../src/importers/readers.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { AssistantServer } from '../../../src/mcp/server.ts'
import { signingKey } from '../../../src/server/auth/signed-text.ts'
import { assetTextFrom } from '../../../src/server/http/assets.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { version } from '../os/system/version.ts'
import { assetsWith } from '../service/http/assets.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { assisting } from './command-flags.ts'
import { type ExitCode, exits } from './exits.ts'

/** `patchbay mcp`: the MCP server on standard input and output, for the service that commands ask. It ends with its input. */
export async function mcp({ flags, signal }: CommandInput<typeof assisting>): Promise<ExitCode> {
  const client = await clientOf(flags)
  const { role, name } = await client.call('GET /v2/session', { signal })
  const key = await signingKey(randomBytes(32) as Uint8Array<ArrayBuffer>, 'confirmations')
  const over = new AbortController()
  onAbort(signal, () => over.abort())
  const server = new AssistantServer({
    ...{ version, client, role, who: name, read: readHere, signal: over.signal },
    asset: assetTextFrom(assetsWith('')),
    confirmKey: flags.approve ? async () => key : undefined,
    report: (error) => void process.stderr.write(`patchbay mcp: ${reasonOf(error)}\n`),
  })
  const ended = new Promise<void>((resolve) => {
    server.onclose = resolve
  })
  onAbort(over.signal, () => void server.close())
  process.stdin.once('end', () => over.abort())
  await server.connect(new StdioServerTransport())
  await ended
  return signal.aborted ? exits.interrupted : exits.done
}
