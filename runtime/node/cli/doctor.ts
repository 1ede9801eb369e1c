import { loadConfig } from '../service/config/load.ts'
import { diagnose } from '../service/doctor/doctor.ts'
import { exits } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'

const marks = { ok: 'ok     ', warning: 'warning', error: 'ERROR  ' } as const

/** `patchbay doctor [--json]`: what labs need here; exit code 1 when something is missing that every lab needs. */
export async function doctorCommand(argv: readonly string[]): Promise<CommandOutcome> {
  const config = loadConfig({ argv, env: process.env })
  const { ok, checks } = await diagnose(config.current)
  const width = Math.max(...checks.map(({ name }) => name.length))
  return {
    exit: ok ? exits.done : exits.failed,
    json: { checks },
    text: () =>
      checks
        .flatMap(({ name, status, found, fix }) => [
          `${marks[status]}  ${name.padEnd(width)}  ${found}`,
          ...(fix === null ? [] : [`${' '.repeat(width + 11)}-> ${fix}`]),
        ])
        .join('\n'),
  }
}
