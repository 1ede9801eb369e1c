import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import type { ErrorBody } from '../../../src/model/schema/fields.ts'
import { isConfirmed } from './confirm.ts'
import { CommandError, exits } from './exits.ts'
import type { CommandDiagnostic } from './json-outputs.ts'

type Untrusted = NonNullable<ErrorBody['untrusted']>[number]

export interface TrustFlags {
  /** `--trust`: the user answers the question with yes. */
  readonly trust: boolean
  readonly json: boolean
}

/**
 * Sends a request that reads a file. When the service says that the file would run programs or open files of its host, the user is shown
 * them and asked; without a terminal CommandError 3 lists them.
 */
export async function trusting<T>(
  file: string,
  { trust, json }: TrustFlags,
  send: (query: { readonly trust?: 'true' }) => Promise<T>,
): Promise<T> {
  if (trust) return send({ trust: 'true' })
  try {
    return await send({})
  } catch (error) {
    if (!(error instanceof PatchbayError) || error.code !== 'not-trusted') throw error
    await requireTrustOf(file, error, json)
    return send({ trust: 'true' })
  }
}

async function requireTrustOf(file: string, error: PatchbayError, json: boolean): Promise<void> {
  const { untrusted = [] } = error.answer as unknown as Partial<ErrorBody>
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true || json)
    throw new CommandError(exits.wrong, refusal(file, untrusted), { cause: error })
  const { shown } = await import('./table.ts')
  process.stderr.write(
    `${shown(file)} would run programs or open files on this computer:\n${untrusted.map((it) => `  ${shown(lineOf(it))}\n`).join('')}`,
  )
  if (!(await isConfirmed('Do you trust this file?'))) throw new CommandError(exits.interrupted, 'nothing was changed')
}

const lineOf = ({ name, setting, value }: Untrusted): string => `${name}: ${setting}: ${value}`

const refusal = (file: string, untrusted: readonly Untrusted[]): CommandDiagnostic[] => [
  {
    file,
    message: 'the file would run programs or open files on this computer, and is not trusted; nothing was changed',
    hint: '--trust allows it; use it only if you know where the file comes from',
  },
  ...untrusted.map((field) => ({ file, message: lineOf(field) })),
]
