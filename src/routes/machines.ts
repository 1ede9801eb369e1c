import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { noSuchNode } from '../http/params.ts'
import { check } from '../http/validate.ts'
import { Uuid } from '../model/common.ts'
import { FoundProgram } from '../model/image.ts'
import { MachineCapabilities, Platform, ResizeDisk } from '../model/machine-emulator.ts'

const Archs = Type.Object(
  {
    archs: Type.Optional(
      Type.Array(Platform, { maxItems: 100, description: 'Only emulators of these platforms; absent: all' }),
    ),
  },
  { $id: 'EmulatorFilter', additionalProperties: false, description: 'Which emulators are asked for' },
)
const query = Type.Object({
  archs: Type.Optional(
    Type.String({ description: 'Platforms, separated by commas or given several times; it counts more than a body' }),
  ),
})

/** What only machines have: their emulators and accelerators in both faces, and disks that grow in v2. */
export const machineEndpoints: readonly Endpoint[] = [
  ...tools('/v1/machine-emulator', 'v1 machine-emulator tools'),
  ...tools('/v2/compute/machine-emulator', 'v2 machine-emulator tools'),
  endpoint({
    method: 'POST',
    path: '/v2/compute/projects/{project_id}/machine-emulator/nodes/{node_id}/resize_disk',
    tag: 'v2 machine-emulator nodes',
    summary: 'Make a disk of a stopped machine larger; its image stays as it is',
    params: Type.Object({ project_id: Uuid, node_id: Uuid }),
    body: ResizeDisk,
    replies: { 201: { description: 'It is' } },
    errors: {
      404: noSuchNode,
      409: 'The machine runs or has no such disk, the tool refused, or the image is missing (its name is then in `image`)',
      507: 'The disk is nearly full',
    },
    async handle({ params, body }, { agent }) {
      await agent.machines.resizeDisk({ ...params, kind: 'machine-emulator' }, body)
      return { status: 201 }
    },
  }),
]

function tools(base: string, tag: string): readonly Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: `${base}/binaries`,
      tag,
      summary: 'Emulators of the host',
      description: 'A body with `archs` is for older clients; `?archs=` says the same, and counts more.',
      query,
      body: Archs,
      replies: { 200: { description: 'Every emulator in PATH that answers', schema: Type.Array(FoundProgram) } },
      async handle({ body, request }, { agent }) {
        const archs = archsOf(request.url) ?? body.archs
        return ok(await (archs === undefined ? agent.machines.emulators() : agent.machines.emulators(archs)))
      },
    }),
    endpoint({
      method: 'GET',
      path: `${base}/capabilities`,
      tag,
      summary: 'Which machines this host can run at full speed',
      replies: { 200: { description: 'The platforms', schema: MachineCapabilities } },
      handle: async (_, { agent }) => ok(await agent.machines.capabilities()),
    }),
  ]
}

/** The platforms in the query, of which the endpoint's own `query` has only the last. */
function archsOf(url: string): readonly string[] | undefined {
  const given = new URL(url).searchParams.getAll('archs')
  const archs = given.flatMap((list) => list.split(',')).filter((arch) => arch !== '')
  return archs.length === 0 ? undefined : check(Archs, { archs }).archs
}
