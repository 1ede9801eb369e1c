import { execute } from './run.ts'
import { home } from './state.ts'

/** A command by itself, with nobody who serves the world. */
async function main(): Promise<void> {
  const locale = process.env.LC_ALL ?? process.env.LANG ?? 'C'
  const { never, ...end } = await execute(home(), { args: process.argv.slice(2), locale, pid: process.pid })
  if (never !== undefined) await new Promise(() => setInterval(() => {}, 1000))
  process.stdout.write(end.stdout)
  process.stderr.write(end.stderr)
  process.exitCode = end.code
}

void main()
