import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { IouImageFacts } from './image.ts'

/** The input of a command line. */
export interface Router {
  readonly settings: {
    readonly ethernet_adapters: number
    readonly serial_adapters: number
    readonly ram: number
    readonly nvram: number
    readonly l1_keepalives: boolean
    readonly use_default_iou_values: boolean
  }
  readonly facts: Pick<IouImageFacts, 'hasKeepalives'>
  readonly applicationId: number
}

/** Default of both kinds of adapters. */
const defaultAdapters = 2

/** The arguments of an image, without its name; 409 when the image does not support a setting. */
export function commandLine({ settings, facts, applicationId }: Router): string[] {
  const { ethernet_adapters, serial_adapters, ram, nvram, l1_keepalives, use_default_iou_values } = settings
  if (l1_keepalives && !facts.hasKeepalives)
    throw conflict('l1_keepalives: this image does not support them (-l is not in its help)')
  return [
    ...(ethernet_adapters === defaultAdapters ? [] : ['-e', String(ethernet_adapters)]),
    ...(serial_adapters === defaultAdapters ? [] : ['-s', String(serial_adapters)]),
    ...(use_default_iou_values ? [] : ['-n', String(nvram), '-m', String(ram)]),
    ...(l1_keepalives ? ['-l'] : []),
    String(applicationId),
  ]
}
