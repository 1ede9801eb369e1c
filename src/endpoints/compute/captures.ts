import { Type } from '@sinclair/typebox'
import type { CaptureSource } from '../../host-agent.ts'
import { wellFormed } from '../../lib/text/escape.ts'
import { CaptureStart, CaptureStarted, CaptureStream } from '../../model/capture.ts'
import { oneOf } from '../../model/schema/fields.ts'
import { pcapng } from '../../packets/pcapng.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { portParams, portRefOf } from '../../server/http/params.ts'
import { noContentAfter } from './no-content.ts'
import type { NodeForm } from './node-form.ts'

const noSuchPort = 'There is no such node, adapter or port'
const notAttached = 'Nothing is attached to the port'
/** The format in which a capture is read. */
export const captureFormat = Type.Object({
  format: Type.Optional(
    oneOf(['pcap', 'pcapng'], { default: 'pcap', description: 'pcapng names the port and the node' }),
  ),
})
const namesInHeaders = 'The headers X-Interface-Name and X-Comment, percent-encoded, name the port and the node.'
const media = { pcap: 'application/vnd.tcpdump.pcap', pcapng: 'application/x-pcapng' }

/** Headers of every capture. */
export const captureHeaders = (format: keyof typeof media) => ({
  'Content-Type': media[format],
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
})

/** The captures of a port: the same in both API versions and for every kind. */
export function captureEndpoints({ path: node, tag, params, ref: nodeOf }: NodeForm): readonly Endpoint[] {
  const port = `${node}/adapters/{adapter_number}/ports/{port_number}`
  const all = { tag, params: Type.Object({ ...params.properties, ...portParams }) }
  return [
    endpoint({
      method: 'POST',
      path: `${port}/start_capture`,
      ...all,
      summary: 'Capture the frames of a port into a file of the project',
      description:
        'Classic pcap of the frames in both directions that passed the filters of the NIO. The capture continues while the node is stopped, and ends when the NIO is removed.',
      body: CaptureStart,
      replies: { 200: { description: 'Capturing', schema: CaptureStarted } },
      errors: {
        404: noSuchPort,
        409: `${notAttached}, the port is already captured, or another capture writes to that file`,
        507: 'The disk is nearly full',
      },
      handle: async ({ params, body }, { agent }) =>
        ok(await agent.nodes.startCapture(nodeOf(params), portRefOf(params), body)),
    }),
    endpoint({
      method: 'POST',
      path: `${port}/stop_capture`,
      ...all,
      summary: 'End the capture of a port; without a capture this has no effect',
      bodyKind: 'ignored',
      replies: { 204: { description: 'The file is complete' } },
      errors: { 404: noSuchPort, 409: notAttached },
      handle: ({ params }, { agent }) => noContentAfter(agent.nodes.stopCapture(nodeOf(params), portRefOf(params))),
    }),
    endpoint({
      method: 'GET',
      path: `${port}/pcap`,
      ...all,
      summary: 'Read the running capture of a port, from its beginning until it ends',
      description: namesInHeaders,
      query: captureFormat,
      replies: { 200: { description: 'The capture, as it grows', media: media.pcap } },
      errors: { 404: noSuchPort, 409: `${notAttached}, or it is not captured` },
      handle: async ({ params, query, request }, { agent }) =>
        stream(await agent.nodes.followCapture(nodeOf(params), portRefOf(params), request.signal), query.format),
    }),
    endpoint({
      method: 'POST',
      path: `${port}/capture/stream`,
      ...all,
      summary: 'Watch the frames of a port, without a file',
      description: `Starts now, and ends with the NIO or the request. Meant to be piped into an analyser. A slow client loses frames when it is 4 MiB behind. ${namesInHeaders}`,
      query: captureFormat,
      body: CaptureStream,
      replies: { 200: { description: 'The frames, as they pass', media: media.pcap } },
      errors: { 404: noSuchPort, 409: notAttached },
      async handle({ params, query, body, request }, { agent }) {
        const wanted = query.format === 'pcapng' ? { ...body, losses: true } : body
        const source = await agent.nodes.streamCapture(nodeOf(params), portRefOf(params), wanted, request.signal)
        return stream(source, query.format)
      },
    }),
  ]
}

function stream({ pcap, interface_name, comment }: CaptureSource, format: keyof typeof media = 'pcap'): Response {
  const body = format === 'pcap' ? pcap : pcap.pipeThrough(pcapng({ interfaceName: interface_name, comment }))
  return new Response(body, {
    headers: {
      ...captureHeaders(format),
      'X-Interface-Name': headerText(interface_name),
      'X-Comment': headerText(comment),
    },
  })
}

/** Percent-encodes a name for a header. */
const headerText = (text: string): string => encodeURIComponent(wellFormed(text))
