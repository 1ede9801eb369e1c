import { loadConfig } from '../service/config/load.ts'
import { diagnose } from '../service/doctor/doctor.ts'
import { coloured } from './colours.ts'
import { exits } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'

const markWidth = 7

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
          `${coloured(status, status.padEnd(markWidth))}  ${name.padEnd(width)}  ${found}`,
          ...(fix === null ? [] : [`${' '.repeat(markWidth + 2 + width + 2)}-> ${fix}`]),
        ])
        .join('\n'),
  }
}
