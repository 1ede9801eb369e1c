import { Type } from '@sinclair/typebox'
import { dynamips } from '../../../../src/model/kinds/dynamips.ts'
import { begins } from '../../engine/storage/file-head.ts'
import { preventing, programCheck } from '../../os/programs/checks.ts'
import type { NodeDriver } from '../node-driver.ts'
import { isIosImage } from './image.ts'
import { installHint } from './program.ts'
import type { DynamipsProperties } from './properties.ts'

const settings = {
  path: Type.String({
    minLength: 1,
    default: 'dynamips',
    description: 'Path of the dynamips program, or a name to look up in PATH',
    reload: true,
  }),
}

/** How this host runs routers that dynamips emulates. */
export const dynamipsDriver: NodeDriver<typeof dynamips, typeof settings, DynamipsProperties> = {
  descriptor: dynamips,
  settings,
  isImage: (file) => begins(file, isIosImage),
  doctor: async ({ path }, signal) => [
    preventing(
      await programCheck(
        'dynamips',
        [path],
        { use: 'for Cisco routers of the 1700 to 7200 series', install: installHint },
        signal,
      ),
      dynamips.name,
    ),
  ],
  open: async (host) => new (await import('./dynamips.ts')).DynamipsKind(host),
}
