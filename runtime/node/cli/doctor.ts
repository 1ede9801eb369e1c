import { loadConfig } from '../config/load.ts'
import { diagnose } from '../doctor/doctor.ts'

const marks = { ok: 'ok     ', warning: 'warning', error: 'ERROR  ' } as const

/** `patchbay doctor [--json]`: what labs need here; exit code 1 when something is missing that every lab needs. */
export async function doctorCommand(argv: readonly string[]): Promise<number> {
  const config = loadConfig({ argv: argv.filter((it) => it !== '--json'), env: process.env })
  const diagnosis = await diagnose(config.current)
  if (argv.includes('--json')) process.stdout.write(`${JSON.stringify(diagnosis, null, 2)}\n`)
  else {
    const width = Math.max(...diagnosis.checks.map(({ name }) => name.length))
    for (const { name, status, found, fix } of diagnosis.checks) {
      process.stdout.write(`${marks[status]}  ${name.padEnd(width)}  ${found}\n`)
      if (fix !== null) process.stdout.write(`${' '.repeat(width + 11)}-> ${fix}\n`)
    }
  }
  return diagnosis.ok ? 0 : 1
}
