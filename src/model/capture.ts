import { type Static, Type } from '@sinclair/typebox'
import { notInLine } from '../lib/text/one-line.ts'
import { closedSchema, objectSchema, oneOf, Uuid } from './schema/fields.ts'

/** Link types of a capture, with their numbers in a pcap file (tcpdump.org/linktypes.html). */
export const linkTypes = {
  DLT_EN10MB: 1,
  DLT_PPP_SERIAL: 50,
  DLT_ATM_RFC1483: 100,
  DLT_C_HDLC: 104,
  DLT_FRELAY: 107,
} as const
export type LinkTypeName = keyof typeof linkTypes

/** The type of a port's line. */
export type LineType = 'ethernet' | 'serial'
/** The possible link types of a line; the first is the default. */
export const linkTypesOf: Readonly<Record<LineType, readonly [LinkTypeName, ...LinkTypeName[]]>> = {
  ethernet: ['DLT_EN10MB'],
  serial: ['DLT_C_HDLC', 'DLT_PPP_SERIAL', 'DLT_FRELAY', 'DLT_ATM_RFC1483'],
}

const LinkType = Type.Unsafe<LinkTypeName>(
  oneOf(Object.keys(linkTypes), {
    description:
      'The type of the frames: DLT_EN10MB (the default) on an Ethernet port, another one on a serial port (default: DLT_C_HDLC)',
  }),
)

export type CaptureStart = Static<typeof CaptureStart>
export const CaptureStart = closedSchema('CaptureStart', 'Where a capture goes', {
  capture_file_name: Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: `^(?!\\.{1,2}$)[^/\\\\${notInLine}]*$`,
    expects: 'the name of a file, without slashes',
    description: 'File in the captures of the project; an existing file is replaced',
  }),
  data_link_type: Type.Optional(LinkType),
})
export type CaptureStarted = Static<typeof CaptureStarted>
export const CaptureStarted = objectSchema('CaptureStarted', 'Where the capture is', {
  pcap_file_path: Type.String({ description: 'Absolute path on the compute' }),
})
export type CaptureStream = Static<typeof CaptureStream>
export const CaptureStream = closedSchema('CaptureStream', 'A capture without a file', {
  data_link_type: Type.Optional(LinkType),
  losses: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Mark frames that the client lost because it was too slow: with empty records, whose original length is the number of ' +
        'frames lost there. pcapng always has them in interface statistics (isb_ifdrop)',
    }),
  ),
})
/** Links that one stream may have: each is a request at its compute. */
export const maxStreamedLinks = 100

export type LabCaptureStream = Static<typeof LabCaptureStream>
export const LabCaptureStream = closedSchema('LabCaptureStream', 'A capture of links of a project without a file', {
  links: Type.Optional(
    Type.Array(Uuid, {
      minItems: 1,
      maxItems: maxStreamedLinks,
      uniqueItems: true,
      description: 'Ids of links; default: all links',
    }),
  ),
})
