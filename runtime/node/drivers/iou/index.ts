import { Type } from '@sinclair/typebox'
import { iou } from '../../../../src/model/kinds/iou.ts'
import { begins } from '../../engine/storage/file-head.ts'
import type { NodeDriver } from '../node-driver.ts'
import { elfHeader } from './elf.ts'
import { isImageName } from './image-name.ts'
import type { IouProperties } from './properties.ts'

const settings = {
  iourc_path: Type.String({
    default: '',
    description: 'Licence file for IOU images. Default: ~/.iourc, then the licence file of the node',
    reload: true,
  }),
  license_check: Type.Boolean({
    default: true,
    description: 'Whether the format of the licence file is checked before a node starts',
    reload: true,
  }),
}

/** How this host runs routers that are IOU images. */
export const iouDriver: NodeDriver<typeof iou, typeof settings, IouProperties> = {
  descriptor: iou,
  settings,
  isImage: async (file, name) => isImageName(name) && (await begins(file, (head) => elfHeader(head) !== undefined)),
  doctor: async (settings, signal, images) => (await import('./doctor.ts')).iouChecks(settings, images ?? [], signal),
  open: async (host) => new (await import('./iou.ts')).IouKind(host),
}
