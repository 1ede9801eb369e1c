import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { leasePorts } from '../support/port-leases.ts'
import { type Service, startServiceWith } from './service.ts'

/** What is asked by `call`. */
export type Front = Pick<Service, 'call'>

interface Joining {
  /** Of the gateway. */
  readonly url: string
  /** With which a compute may join. */
  readonly token: string
  /** What is started is put there: it has to be closed. */
  readonly services: Pick<Service, 'close'>[]
}

/** Two computes behind a gateway, one at an address and one by a tunnel, and the paths of a pc on each. */
export async function nearAndFar(
  front: Front,
  { url, token, services }: Joining,
): Promise<{ near: Service; onNear: string; onFar: string; farId: string }> {
  const open = async (flags: readonly string[], env: Record<string, string> = {}): Promise<Service> => {
    const service = await startServiceWith(env, ...flags)
    services.push(service)
    return service
  }
  const near = await open(ports())
  const far = await open([...ports(), '--join', url.replace('http', 'ws')], { PATCHBAY_JOIN_TOKEN: token })
  const { hostname: host, port } = new URL(near.url)
  await front.call('POST', '/v2/computes', { compute_id: 'near', protocol: 'http', host, port: Number(port) })
  const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await untilConnected(front, farId)
  return { near, onNear: await newPc(front, 'near'), onFar: await newPc(front, farId), farId }
}

function ports(): string[] {
  const { first } = leasePorts(300)
  return [
    `--console-port-range=${first}-${first + 99}`,
    `--udp-port-range=${first + 100}-${first + 199}`,
    `--vnc-port-range=${first + 200}-${first + 299}`,
  ]
}

/** Resolves when the gateway is connected to the compute; rejects after a minute. */
export async function untilConnected(front: Front, id: string): Promise<void> {
  const until = Date.now() + 60_000
  while (!(await isConnected(front, id))) {
    if (Date.now() > until) throw new Error(`the compute ${id} is not connected`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function isConnected(front: Front, id: string): Promise<boolean> {
  const computes = (await front.call('GET', '/v2/computes')) as { compute_id: string; connected: boolean }[]
  return computes.some(({ compute_id, connected }) => compute_id === id && connected)
}

/** The path of a pc at that compute. */
async function newPc(front: Front, compute_id: string): Promise<string> {
  const project_id = randomUUID()
  await front.call('POST', '/v2/compute/projects', { name: 'bench', project_id, compute_id })
  const nodes = `/v2/compute/projects/${project_id}/pc/nodes`
  const { node_id } = (await front.call('POST', nodes, { name: 'PC' })) as { node_id: string }
  return `${nodes}/${node_id}`
}
