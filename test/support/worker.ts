import { type App, createApp } from '../../src/app.ts'
import { ApiError } from '../../src/errors.ts'
import { ApplianceVm } from '../../src/fleet/appliance-vm.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { RemoteEngine } from '../../src/fleet/remote-engine.ts'
import { fetchTransport } from '../../src/fleet/transport.ts'
import type { CaptureSource, HostAgent } from '../../src/host-agent.ts'
import { type Socket, subprotocolOf } from '../../src/http/socket.ts'
import type { FeedItem } from '../../src/model/event.ts'
import { MemoryAppliance } from './memory-appliance.ts'
import { MemoryRegistry } from './memory-registry.ts'

/** The app in workerd, over the host agent of the test process (bridge.ts). */
interface Env {
  readonly BRIDGE: string
}

declare const WebSocketPair: new () => { 0: WebSocket; 1: WebSocket & { accept(): void } }

/** What an ApiError has beside its message. */
interface Fault {
  readonly status: number
  readonly image?: string
  readonly headers: Record<string, string>
}

let app: Promise<App> | undefined

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    app ??= open(env)
    return (await app).fetch(request)
  },
}

async function open(env: Env): Promise<App> {
  const agent = bridged(env.BRIDGE)
  const fleet = await Fleet.open({
    registry: new MemoryRegistry(),
    transport: fetchTransport((url, init) => fetch(url, init)),
    version: '0.0.0-test',
    // What a request of a worker began ends with it.
    upkeep: false,
    local: {
      name: 'this',
      address: () => ({ protocol: 'http', host: '127.0.0.1', port: 3080 }),
      user: null,
      host: agent.host,
      fetch: (request) => opened.inside(request),
    },
  })
  const engines = { remote: new RemoteEngine(fleet) }
  const opened: App = createApp({
    agent,
    fleet,
    appliance: await ApplianceVm.open({ fleet, engines, store: new MemoryAppliance() }),
    version: '0.0.0-test',
    access: () => ({
      hosts: new Set(['127.0.0.1', 'localhost']),
      allowedOrigins: new Set(['https://lab.example']),
      user: '',
      password: '',
      token: '',
    }),
    jsonBytes: 64 * 1024,
    aliases: { vpcs: 'pc' },
    json: (body, status, headers) =>
      new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } }),
    upgrade(request, on) {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      on.open(wrap(server))
      const protocol = subprotocolOf(request.headers.get('sec-websocket-protocol')?.split(',') ?? [])
      const headers = protocol === undefined ? {} : { 'Sec-WebSocket-Protocol': protocol }
      return new Response(null, { status: 101, webSocket: client, headers } as ResponseInit)
    },
    docsScript: async () => '// the script of the reference page',
    // biome-ignore lint/suspicious/noConsole: the only way out of a worker
    report: (error) => console.error(error),
  })
  return opened
}

function wrap(socket: WebSocket): Socket {
  socket.binaryType = 'arraybuffer'
  return {
    send: (data) => socket.send(data as string),
    close: (code, reason) => socket.close(code, reason),
    onMessage: (receive) =>
      socket.addEventListener('message', ({ data }) =>
        receive(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer)),
      ),
    onClose: (closed) => socket.addEventListener('close', closed, { once: true }),
    drained: async () => {},
  }
}

/** Every operation becomes a request to the bridge. */
function bridged(url: string): HostAgent {
  const call = async (room: string, name: string, args: unknown[], body?: ReadableStream<Uint8Array>) => {
    const answer = await fetch(`${url}/${room}/${name}`, {
      method: 'POST',
      headers: { 'x-arguments': encodeURIComponent(JSON.stringify(args)), 'accept-encoding': 'identity' },
      ...(body !== undefined && { body }),
    })
    if (answer.status === 599) {
      const { status, ...rest } = JSON.parse(decodeURIComponent(answer.headers.get('x-fault') ?? '')) as Fault
      throw new ApiError(status, await answer.text(), rest)
    }
    return answer
  }
  /** A file: its bytes are the body, what else is known of it is in a header. */
  const stored = async (room: string, args: unknown[]) => {
    const answer = await call(room, 'read', args)
    const facts = JSON.parse(answer.headers.get('x-facts') ?? '') as object
    return { ...facts, content: answer.body as ReadableStream<Uint8Array> }
  }
  /** `own` are the operations of a room that take or give streams. */
  const room = (roomName: string, own: object = {}) =>
    new Proxy(own, {
      get: (target, name: string) =>
        Reflect.get(target, name) ?? (async (...args: unknown[]) => (await call(roomName, name, args)).json()),
    })
  const capture =
    (name: string) =>
    async (...args: unknown[]): Promise<CaptureSource> => {
      // The last is a signal: the end of the answer tells the same.
      const answer = await call('nodes', name, args.slice(0, -1))
      const names = JSON.parse(decodeURIComponent(answer.headers.get('x-names') ?? '')) as Omit<CaptureSource, 'pcap'>
      return { ...names, pcap: answer.body as ReadableStream<Uint8Array> }
    }
  return {
    host: room('host'),
    projects: room('projects'),
    machines: room('machines'),
    routers: room('routers'),
    dynamips: room('dynamips'),
    hypervisors: room('hypervisors'),
    nodes: room('nodes', {
      followCapture: capture('followCapture'),
      streamCapture: capture('streamCapture'),
    }),
    files: room('files', {
      read: (...args: unknown[]) => stored('files', args),
      async write(id: string, path: string, content: ReadableStream<Uint8Array>, options: object) {
        await call('files', 'write', [id, path, null, options], content)
      },
    }),
    images: room('images', {
      read: (...args: unknown[]) => stored('images', args),
      async write(kind: string, name: string, content: ReadableStream<Uint8Array>, options: object) {
        return (await call('images', 'write', [kind, name, null, options], content)).json()
      },
    }),
    events: {
      async open({ signal: _, ...options }) {
        const answer = await call('events', 'open', [options])
        return (answer.body as ReadableStream<Uint8Array>)
          .pipeThrough(new TextDecoderStream() as never)
          .pipeThrough(lines())
      },
    },
  } as HostAgent
}

function lines(): TransformStream<string, FeedItem> {
  let rest = ''
  return new TransformStream({
    transform(text, controller) {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) controller.enqueue(JSON.parse(part) as FeedItem)
    },
  })
}
