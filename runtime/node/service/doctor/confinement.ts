import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { error, ok, warning } from '../../os/programs/checks.ts'
import { findProtection, landlockWithTcp, type Protection } from '../../os/sandbox/sandbox.ts'
import type { Resolved } from '../config/config.ts'

const name = 'confinement'

/** What confines the emulators of clients outside local mode. */
export async function confinementCheck(
  settings: Pick<Resolved, 'local' | 'sandbox' | 'require_sandbox' | 'emulator_user'>,
): Promise<DoctorCheck> {
  const { local, sandbox, require_sandbox } = settings
  const when = local ? '; used outside local mode' : ''
  if (sandbox === 'off') {
    const found = `the setting sandbox is off${when}`
    if (local) return ok(name, found)
    return (require_sandbox ? error : warning)(name, found, 'set sandbox = "auto"')
  }
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-doctor-'))
  try {
    const found = await findProtection(settings, directory)
    if ('protection' in found) return ok(name, `${protectionText(found.protection)}${when}`)
    return (require_sandbox && !local ? error : warning)(name, `none: ${found.reason}${when}`, fixOf(found.reason))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** A protection as text, such as `bubblewrap, as nobody, Landlock 7`. */
export const protectionText = ({ by, user, landlock }: Protection): string =>
  [
    by,
    ...(user === undefined ? [] : [`as ${user.name}`]),
    landlock >= landlockWithTcp
      ? `Landlock ${landlock}`
      : landlock > 0
        ? `Landlock ${landlock}, which does not restrict TCP yet`
        : 'no Landlock',
  ].join(', ')

function fixOf(reason: string): string {
  if (reason.includes('emulator_user')) return 'set emulator_user to a user of this host'
  if (reason.includes('bwrap is not installed')) return 'sudo apt-get install bubblewrap'
  return 'allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0); in a container, do this on its host'
}
