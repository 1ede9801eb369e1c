import type { DoctorCheck } from '../../../../src/model/host.ts'
import { error, ok, warning } from '../../os/programs/checks.ts'
import type { PcSettings } from './pc.ts'
import { findVpcs } from './vpcs.ts'

const install = 'sudo apt-get install vpcs'

/** Checks whether a usable VPCS is installed. */
export async function vpcsCheck({ engine, vpcs_path }: PcSettings): Promise<DoctorCheck> {
  const found = await findVpcs(vpcs_path)
  if (found !== undefined && engine === 'auto' && !found.isPreferred) {
    const why = `${found.version}, ${found.path}: commands are missing before 0.6.1`
    return warning(
      'VPCS',
      `${why}, so pcs run in the embedded simulator`,
      'pc.engine = "vpcs" in the configuration takes it',
    )
  }
  if (found !== undefined) return ok('VPCS', `${found.version}, ${found.path}`)
  if (engine === 'vpcs') return error('VPCS', 'not found, and pc.engine is vpcs', install)
  return warning('VPCS', 'not found: pcs run in the embedded simulator', `${install} (only if you want it)`)
}
