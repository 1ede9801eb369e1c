import { join } from 'node:path'
import type { ProcessSpec, UnitSpec } from '../../runtime/node/keeper/protocol/protocol.ts'

/** A unit that runs a shell script in the directory, its pipes being the console. */
export function shellUnit(directory: string, script: string, more: Partial<ProcessSpec> = {}): UnitSpec {
  return {
    key: 'test:unit',
    run: {
      type: 'process',
      command: '/bin/sh',
      args: ['-c', script],
      cwd: directory,
      log: join(directory, 'unit.log'),
      stdio: 'pipe',
      ...more,
    },
  }
}
