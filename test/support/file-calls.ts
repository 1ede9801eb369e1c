import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished } from 'vitest'

type Module = Record<string, unknown>

/** Until the test ends: the calls of this process to `node:fs` and `node:fs/promises`, by their names and first arguments. */
export function watchFileCalls(): () => readonly string[] {
  const calls: string[] = []
  const undo: (() => void)[] = []
  for (const module of [fs, promises] as unknown as Module[]) {
    for (const [name, call] of Object.entries(module)) {
      // Classes, such as Stats, are no calls.
      if (typeof call !== 'function' || /^[A-Z_]/.test(name)) continue
      module[name] = Object.assign((...args: unknown[]) => {
        calls.push(`${name} ${String(args[0])}`)
        return call(...args)
      }, call)
      undo.push(() => {
        module[name] = call
      })
    }
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    for (const step of undo) step()
    syncBuiltinESMExports()
  })
  return () => calls
}
