import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { sha256, toHex } from '../../lib/crypto/secret.ts'
import { ApiError, badRequest, notFound } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import type { NodeUpdate } from '../../model/kinds/node.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, propertiesOf } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { nodeOnCompute } from './nodes.ts'

/** The text of a configuration, and its digest as an entity tag. */
export interface NodeConfig {
  readonly text: string
  readonly etag: string
}

/** One write of a configuration at a time, so that of two with the same `If-Match` one fails. */
const mutexes = new WeakMap<Lab, KeyedMutex>()

/** Reads a configuration of a node; '' when it has none yet. 404 when its kind has no configuration of that name. */
export async function readConfig(
  lab: Lab,
  idOrName: string,
  name: string | undefined,
  agentFor: ComputeAgents,
): Promise<NodeConfig> {
  const record = nodeOnCompute(lab, idOrName)
  const { field, action } = accessOf(record, name)
  const { nodes } = agentFor(record.compute_id)
  const ref = nodeRefOf(lab, record)
  const shown = await (action === undefined ? nodes.get(ref) : nodes.action(ref, action, {}))
  const value = (shown as Readonly<Record<string, unknown>>)[field]
  const text = typeof value === 'string' ? value : ''
  return { text, etag: `"${toHex(await sha256(text))}"` }
}

/** Replaces a configuration. 412 when `ifMatch` is given and lacks the present entity tag; 404 as `readConfig`; 409. */
export async function writeConfig(
  lab: Lab,
  idOrName: string,
  {
    name,
    text,
    ifMatch,
    agentFor,
  }: { name: string | undefined; text: string; ifMatch: string | null; agentFor: ComputeAgents },
): Promise<NodeConfig> {
  const record = nodeOnCompute(lab, idOrName)
  const { field, keepsEmpty } = accessOf(record, name)
  if (text === '' && keepsEmpty !== true)
    throw badRequest(`body: the configuration of a ${record.node_type} node cannot be empty`)
  const mutex = mutexes.get(lab) ?? new KeyedMutex()
  mutexes.set(lab, mutex)
  return mutex.run(`${record.node_id}/${field}`, async () => {
    const { etag, text: before } = await readConfig(lab, idOrName, name, agentFor)
    if (ifMatch !== null) {
      const wanted = ifMatch.split(',').map((tag) => tag.trim())
      if (!wanted.includes(etag) && !wanted.includes('*'))
        throw new ApiError(412, `If-Match: the configuration was changed meanwhile; its ETag is ${etag} now`)
    }
    const put = async (value: string) => {
      const shown = await agentFor(record.compute_id).nodes.update(nodeRefOf(lab, record), {
        [field]: value,
      } as NodeUpdate)
      lab.keepReported(shown)
      return shown
    }
    await lab.change(async () => {
      const shown = await put(text)
      const write = () =>
        lab.edit(() => {
          // 404 for a node that was deleted meanwhile.
          const next = { ...lab.node(record.node_id), properties: propertiesOf(shown) }
          return {
            changes: new Changes().put('node', record.node_id, next),
            news: () => [{ action: 'node.updated', event: lab.nodeView(next) }],
            result: undefined,
          }
        })
      await saveOrRevert(lab, write, () => put(before))
    })
    return readConfig(lab, record.node_id, name, agentFor)
  })
}

function accessOf({ node_type }: NodeRecord, name: string | undefined) {
  const { configs = {} }: KindDescriptor = isKnownKind(node_type) ? kindOf(node_type) : ({} as KindDescriptor)
  const names = Object.keys(configs)
  if (names.length === 0) throw notFound(`node_id: ${node_type} nodes have no configuration`)
  const found = configs[name ?? (names[0] as string)]
  if (found === undefined)
    throw notFound(`name: ${node_type} nodes have no configuration ${name}, only ${names.join(', ')}`)
  return found
}
