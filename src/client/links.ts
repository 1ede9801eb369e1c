import type { CaptureSource, NodeAgent, PortRef } from '../host-agent.ts'
import type { NodeRef } from '../kinds/node.ts'
import { CaptureStarted } from '../model/capture.ts'
import { Nio, NioState } from '../schema/nio.ts'
import type { Call, Connection } from './connection.ts'
import { nodePath } from './nodes.ts'
import { path } from './paths.ts'

type Links = Pick<
  NodeAgent,
  | 'attachNio'
  | 'updateNio'
  | 'detachNio'
  | 'nioState'
  | 'startCapture'
  | 'stopCapture'
  | 'followCapture'
  | 'streamCapture'
>

/** What ports are attached to, and the captures of them. */
export function remoteLinks(connection: Connection): Links {
  return {
    attachNio: (ref, port, input) =>
      connection.json(Nio, { method: 'POST', path: `${portPath(ref, port)}/nio`, input }),
    updateNio: (ref, port, input) => connection.json(Nio, { method: 'PUT', path: `${portPath(ref, port)}/nio`, input }),
    async detachNio(ref, port) {
      await connection.done({ method: 'DELETE', path: `${portPath(ref, port)}/nio` })
    },
    async nioState(ref, port) {
      // The union of the schema has the types of Nio, and their states beside them.
      const call = { method: 'GET', path: `${portPath(ref, port)}/nio`, pace: 'work' } as const
      return (await connection.json(NioState, call)) as NioState
    },
    startCapture: (ref, port, input) =>
      connection.json(CaptureStarted, { method: 'POST', path: `${portPath(ref, port)}/start_capture`, input }),
    async stopCapture(ref, port) {
      await connection.done({ method: 'POST', path: `${portPath(ref, port)}/stop_capture` })
    },
    followCapture: (ref, port, signal) =>
      capture(connection, { method: 'GET', path: `${portPath(ref, port)}/pcap`, pace: 'work', signal }),
    streamCapture: (ref, port, input, signal) =>
      capture(connection, {
        method: 'POST',
        path: `${portPath(ref, port)}/capture/stream`,
        input,
        signal,
      }),
  }
}

const portPath = (ref: NodeRef, { adapter, port }: PortRef): string =>
  nodePath(ref) + path`/adapters/${adapter}/ports/${port}`

/** On a quiet link nothing comes for as long as it is quiet. */
async function capture(connection: Connection, call: Call): Promise<CaptureSource> {
  const { response, body } = await connection.stream(call, { idleMs: undefined })
  const { headers } = response
  return { pcap: body, interface_name: text(headers.get('x-interface-name')), comment: text(headers.get('x-comment')) }
}

/** Only names: one that is malformed is none. */
function text(header: string | null): string {
  try {
    return decodeURIComponent(header ?? '')
  } catch {
    return ''
  }
}
