import { endsText, stateOf } from '../../../src/client/link-names.ts'
import type { LabProject, Patchbay } from '../../../src/client/patchbay.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { clientOf } from './client.ts'
import type { Completion } from './command.ts'
import type { Candidate, Names } from './completion.ts'
import { secondsOf } from './durations.ts'
import { linksOf, nodesOf } from './targets.ts'

/** A person waits at a key: a service that has not answered by then offers nothing, s. PATCHBAY_COMPLETION_WAIT gives it more. */
const defaultWaitS = 1
const maxNames = 2000

/** The names of the service that the command would ask; none when there is none, or when it does not answer in time. */
export const namesOfService: Names = async (what, word, server) => {
  try {
    const waitS = secondsOf('PATCHBAY_COMPLETION_WAIT', process.env.PATCHBAY_COMPLETION_WAIT || undefined, defaultWaitS)
    const signal = AbortSignal.timeout(waitS * 1000)
    const client = await clientOf({ server })
    const found = await lists[what]?.(client, word, signal)
    // A name with a line break or a tab would be several words to a shell, and others would control the terminal.
    return (found ?? []).filter((candidate) => escapeUnsafe(candidate.word) === candidate.word).slice(0, maxNames)
  } catch {
    return []
  }
}

type List = (client: Patchbay, word: string, signal: AbortSignal) => Promise<readonly Candidate[]>

const labs: List = async (client, _, signal) =>
  (await client.call('GET /v2/projects', { signal })).map(({ name, status }) => ({
    word: name,
    about: status === 'closed' ? 'closed' : 'lab',
  }))

/** Labs until the word has a slash, then what is in that lab. */
const inLab =
  (
    list: (lab: LabProject, context: { client: Patchbay; signal: AbortSignal }) => Promise<readonly Candidate[]>,
  ): List =>
  async (client, word, signal) => {
    const slash = word.indexOf('/')
    if (slash === -1)
      return (await labs(client, word, signal)).map((candidate) => ({ ...candidate, word: `${candidate.word}/` }))
    const name = word.slice(0, slash)
    const lab = await client.call('GET /v2/projects/{project_id}', { params: { project_id: name }, signal })
    return (await list(lab, { client, signal })).map((candidate) => ({
      ...candidate,
      word: `${name}/${candidate.word}`,
    }))
  }

const lists: Partial<Readonly<Record<Completion, List>>> = {
  lab: labs,
  node: inLab(async (lab, context) =>
    (await nodesOf(lab, context)).map((node) => ({ word: node.name, about: `${node.node_type}, ${stateOf(node)}` })),
  ),
  link: inLab(async (lab, context) => {
    const [nodes, links] = await Promise.all([nodesOf(lab, context), linksOf(lab, context)])
    return links.flatMap((link) => {
      const ends = endsText(link, nodes)
      const words = link.name == null ? ends.split(' -- ') : [link.name]
      return words.map((word) => ({ word, about: `${ends}, ${link.suspend ? 'suspended' : (link.verdict ?? 'link')}` }))
    })
  }),
  snapshot: inLab(async ({ project_id }, { client, signal }) =>
    (await client.call('GET /v2/projects/{project_id}/snapshots', { params: { project_id }, signal })).map(
      ({ name }) => ({ word: name, about: 'snapshot' }),
    ),
  ),
  compute: async (client, _, signal) =>
    (await client.call('GET /v2/computes', { signal })).map(({ compute_id, name }) => ({
      word: compute_id,
      about: name,
    })),
  token: async (client, _, signal) =>
    (await client.call('GET /v2/tokens', { signal })).map(({ name, role, purpose }) => ({
      word: name,
      about: purpose === 'join' ? 'join token' : role,
    })),
  organization: async (client, _, signal) =>
    (await client.call('GET /v2/organizations', { signal })).map(({ organization_id, name }) => ({
      word: organization_id,
      about: name,
    })),
  class: async (client, _, signal) =>
    (await client.call('GET /v2/classes', { signal })).map(({ name, students }) => ({
      word: name,
      about: counted(students.length, 'student'),
    })),
  template: async (client, _, signal) =>
    (await client.call('GET /v2/templates', { signal })).map(({ name, template_type }) => ({
      word: name,
      about: template_type,
    })),
  image: async (client, _, signal) => {
    const { imageKinds } = await import('../../../src/model/image.ts')
    const listOf = async (kind: (typeof imageKinds)[number]) =>
      (await client.call(`GET /v2/compute/${kind}/images`, { signal })).map((image) => ({
        word: image.path,
        about: kind,
      }))
    return (await Promise.all(imageKinds.map(listOf))).flat()
  },
}
