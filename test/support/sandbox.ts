import { type Confinement, Sandbox, type SandboxSettings } from '../../runtime/node/os/sandbox/sandbox.ts'
import { freshDirectory } from './directory.ts'

export const defaultSandbox: SandboxSettings = { sandbox: 'auto', require_sandbox: false, emulator_user: 'nobody' }

/** The sandbox of a service with these settings. */
export async function sandboxOf(more: Partial<SandboxSettings> = {}, isLocal = false): Promise<Sandbox> {
  const runDirectory = await freshDirectory()
  return new Sandbox({ settings: () => ({ ...defaultSandbox, ...more }), isLocal: () => isLocal, runDirectory })
}

/** Confinement by one means, on a host that supports it. */
export async function confinementBy(by: 'bubblewrap' | 'namespaces'): Promise<Confinement> {
  const confinement = await (await sandboxOf({ sandbox: by, require_sandbox: true })).confinement()
  if (confinement === undefined) throw new Error('nothing confines here')
  return confinement
}
