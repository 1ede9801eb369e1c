import { Create } from '@sinclair/typebox/value'
import { linkTypes } from '../../../../src/model/capture.ts'
import { type NioState, PortCounters } from '../../../../src/model/schema/nio.ts'
import type { CaptureState, PortReport } from '../../keeper/protocol/protocol.ts'

type State = Pick<NioState, 'link' | 'link_reason' | 'path' | 'counters' | 'capture'>

/** The state of a port that the switch does not have. */
export const nothingPassed: Omit<State, 'link' | 'link_reason'> = {
  path: 'relay',
  counters: Create(PortCounters),
  capture: null,
}

/** The switch's report on a port in the form for clients. */
export const stateOf = ({ link, reason, path, counters, capture }: PortReport): State => ({
  link: link ?? 'silent',
  link_reason: reason ?? null,
  path: path ?? 'relay',
  counters,
  capture: captureOf(capture),
})

/** A capture in the form for clients. */
export const captureOf = (capture: CaptureState | null): State['capture'] =>
  capture && {
    pcap_file_path: capture.file,
    data_link_type: linkTypeName(capture.link_type),
    frames: capture.frames,
    missed: capture.missed,
  }

const linkTypeName = (number: number): string =>
  Object.entries(linkTypes).find(([, it]) => it === number)?.[0] ?? String(number)
