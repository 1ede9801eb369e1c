import { Type } from '@sinclair/typebox'
import { badRequest } from '../../lib/errors/api-error.ts'
import { Name } from '../../model/schema/fields.ts'
import { named, someNamed } from '../parts/answer-text.ts'
import { labInput, labNamed, labVerdict, nodeRow, wholeLab } from '../parts/labs.ts'
import { type Tool, type ToolContext, tool } from '../parts/tool.ts'

const snapshotsOf = ({ project_id }: { readonly project_id: string }, { client, signal }: ToolContext) =>
  client.call('GET /v2/projects/{project_id}/snapshots', { params: { project_id }, signal })

/** The snapshot of a lab that a word names. 400 with those that there are. */
async function snapshotNamed(lab: { readonly project_id: string }, word: string, context: ToolContext) {
  const all = await snapshotsOf(lab, context)
  const wanted = word.toLowerCase()
  const found = all.find(({ name, snapshot_id }) => name.toLowerCase() === wanted || snapshot_id === wanted)
  if (found !== undefined) return found
  const names = all.map(({ name }) => name)
  const list = names.length === 0 ? 'has none' : `has ${someNamed(names, 20)}`
  throw badRequest(`snapshot: there is no ${named(word)}; the lab ${list}`)
}

export const snapshotTools: readonly Tool[] = [
  tool({
    name: 'snapshot',
    title: 'Take a snapshot',
    description:
      'Takes a snapshot of a lab: nodes, links, disks, and the memory of running machines, which keep running.',
    role: 'operate',
    input: Type.Object({ ...labInput, name: Name }, { additionalProperties: false }),
    async plan({ lab: word, name }, context) {
      const lab = await labNamed(word, context)
      const snapshots = (await snapshotsOf(lab, context)).map((it) => it.name)
      return {
        sentence: `Take the snapshot ${named(name)} of ${named(lab.name)}`,
        data: { lab: lab.name, revision: lab.revision, name, snapshots },
      }
    },
    async run({ lab: word, name }, context) {
      const { client, signal } = context
      const lab = await labNamed(word, context)
      const params = { project_id: lab.project_id }
      const taken = await client.call('POST /v2/projects/{project_id}/snapshots', { params, body: { name }, signal })
      return {
        verdict: `The snapshot ${named(taken.name)} has the lab with ${taken.running} running nodes`,
        done: [`Took the snapshot ${named(taken.name)} of ${named(lab.name)}`],
        data: { name: taken.name, running: taken.running, size: taken.size },
      }
    },
  }),
  tool({
    name: 'restore',
    title: 'Restore a snapshot',
    description:
      'Stops the nodes of a lab, restores a snapshot, and starts the nodes that ran when it was taken. All later changes are lost.',
    role: 'operate',
    isDestructive: true,
    input: Type.Object(
      { ...labInput, snapshot: Type.String({ minLength: 1, maxLength: 255, description: 'Name of the snapshot' }) },
      { additionalProperties: false },
    ),
    async plan({ lab: word, snapshot }, context) {
      const { lab, nodes } = await wholeLab(word, context)
      const { snapshot_id, name } = await snapshotNamed(lab, snapshot, context)
      const running = nodes.filter(({ status }) => status === 'started').map((it) => it.name)
      return {
        sentence: `Restore ${named(lab.name)} to the snapshot ${named(name)}: what was changed after it is lost`,
        data: { lab: lab.name, revision: lab.revision, snapshot_id, name, running },
      }
    },
    async run({ lab: word, snapshot }, context) {
      const { client, signal } = context
      const lab = await labNamed(word, context)
      const { snapshot_id, name } = await snapshotNamed(lab, snapshot, context)
      const params = { project_id: lab.project_id, snapshot_id }
      await client.call('POST /v2/projects/{project_id}/snapshots/{snapshot_id}/restore', { params, signal })
      const whole = await wholeLab(lab.project_id, context)
      return {
        verdict: labVerdict(whole),
        done: [`Restored ${named(lab.name)} to the snapshot ${named(name)}`],
        data: { nodes: whole.nodes.map(nodeRow) },
      }
    },
  }),
]
