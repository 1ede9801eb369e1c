#!/usr/bin/env node
import { runCommand } from './commands.ts'
import { ConfigError } from './config/config-error.ts'
import { NewerRecord } from './storage/newer-record.ts'
import { keepCompiledCode } from './system/compile-cache.ts'

keepCompiledCode()
try {
  process.exitCode = await runCommand(process.argv.slice(2))
  // An open socket or timer must not keep the process of an ended command alive.
  process.exit()
} catch (error) {
  const { name } = error as Error
  const isOurs =
    error instanceof ConfigError || ['StartError', 'ApiError'].includes(name) || error instanceof NewerRecord
  process.stderr.write(`patchbay: ${isOurs ? (error as Error).message : (error as Error).stack}\n`)
  process.exit(error instanceof ConfigError ? 2 : 1)
}
