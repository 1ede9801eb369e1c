#!/usr/bin/env node
import { commands } from './cli/commands.ts'
import { runCommand } from './cli/run.ts'
import { keepCompiledCode } from './os/system/compile-cache.ts'

keepCompiledCode()
try {
  process.exitCode = await runCommand(process.argv.slice(2), commands)
  // A pipe takes 64 KiB at once; the reader may also be gone already.
  for (const stream of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => stream.once('error', () => resolve()).write('', () => resolve()))
  // An open socket or timer must not keep the process of an ended command alive.
  process.exit()
} catch (error) {
  process.stderr.write(`patchbay: ${(error as Error).stack}\n`)
  process.exit(1)
}
