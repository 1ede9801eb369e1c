import { type TObject, Type } from '@sinclair/typebox'
import type { ApiVersion, KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf, type Node, type NodeKindName, type NodeRef, nodeView } from '../../model/kinds/node.ts'
import { Uuid } from '../../model/schema/fields.ts'
import { instanceV1 } from '../v1/views.ts'

type Body = Readonly<Record<string, unknown>>

/** The nodes of a kind in one version of the API: paths, schemas, conversions, and nouns for texts. */
export interface NodeForm {
  readonly version: ApiVersion
  readonly kind: NodeKindName
  readonly descriptor: KindDescriptor
  readonly tag: string
  /** Path of the list. */
  readonly list: string
  /** Path of one node, and its parameters. */
  readonly path: string
  readonly params: TObject
  /** The node that the parameters of a path name. */
  ref(params: unknown): NodeRef
  /** The nouns for one node and for several, within a sentence. */
  readonly noun: string
  readonly nouns: string
  readonly schemas: Readonly<Record<'node' | 'create' | 'update', TObject>>
  toView(node: Node): object
  /** The body of a create (`input`) and of an update (`changes`) in the form of the agent. */
  input(body: Body): Body
  changes(body: Body): Body
}

export function nodeFormOf(version: ApiVersion, kind: NodeKindName): NodeForm {
  const descriptor = kindOf(kind)
  const { noun, v1, v2 } = descriptor
  if (version === 'v1') {
    return {
      ...{
        version,
        kind,
        descriptor,
        noun,
        nouns: `${noun}${noun.endsWith('ch') ? 'es' : 's'}`,
        tag: `v1 ${kind} instances`,
      },
      ...pathsOf(kind, `/v1/projects/{project_id}/${kind}/vms`, 'vm_id'),
      schemas: { node: v1.instance, create: v1.create, update: v1.update },
      toView: instanceV1,
      input(body) {
        const { vm_id: node_id, ...rest } = v1.input(body)
        return { ...rest, ...(node_id !== undefined && { node_id }) }
      },
      changes: v1.input,
    }
  }
  return {
    version,
    kind,
    descriptor,
    noun: 'node',
    nouns: `${kind} nodes`,
    tag: `v2 ${kind} nodes`,
    ...pathsOf(kind, `/v2/compute/projects/{project_id}/${kind}/nodes`, 'node_id'),
    schemas: descriptor,
    toView: nodeView,
    input: (body) => body,
    changes: v2?.changes ?? ((body) => body),
  }
}

function pathsOf(kind: NodeKindName, list: string, id: string): Pick<NodeForm, 'list' | 'path' | 'params' | 'ref'> {
  return {
    list,
    path: `${list}/{${id}}`,
    params: Type.Object({ project_id: Uuid, [id]: Uuid }),
    ref(params) {
      const { project_id = '', [id]: node_id = '' } = params as Record<string, string>
      return { project_id, kind, node_id }
    },
  }
}
