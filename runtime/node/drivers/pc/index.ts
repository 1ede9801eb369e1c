import { Type } from '@sinclair/typebox'
import { pc } from '../../../../src/model/kinds/pc.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { PcProperties } from './properties.ts'

const settings = {
  engine: Type.Union([Type.Literal('auto'), Type.Literal('vpcs'), Type.Literal('embedded')], {
    default: 'auto',
    description:
      'What runs pcs; auto uses VPCS if version 0.6.1 or later is installed; otherwise, and always outside local mode, the embedded simulator',
    reload: true,
  }),
  vpcs_path: Type.String({
    minLength: 1,
    default: 'vpcs',
    description: 'Path of the VPCS program, or a name to look up in PATH',
    reload: true,
  }),
}

/** How this host runs pcs. */
export const pcDriver: NodeDriver<typeof pc, typeof settings, PcProperties> = {
  descriptor: pc,
  settings,
  doctor: async (settings) => [await (await import('./doctor.ts')).vpcsCheck(settings)],
  open: async (host) => new (await import('./pc.ts')).PcKind(host),
}
