import { Type } from '@sinclair/typebox'
import { counted } from '../../lib/text/counted.ts'
import { named } from '../parts/answer-text.ts'
import { labInput, labVerdict, linkRow, nodeNamed, nodeRow, wholeLab } from '../parts/labs.ts'
import { type Tool, tool } from '../parts/tool.ts'

export const labTools: readonly Tool[] = [
  tool({
    name: 'labs',
    title: 'List labs',
    description: 'Lists the labs with their states, nodes and the worst verdict of their links.',
    role: 'read',
    input: Type.Object(
      { name: Type.Optional(Type.String({ maxLength: 255, description: 'Only labs whose name has this text' })) },
      { additionalProperties: false },
    ),
    async run({ name = '' }, { client, signal }) {
      const all = await client.call('GET /v2/projects', { signal })
      const labs = all.filter((it) => it.name.toLowerCase().includes(name.toLowerCase()))
      const open = labs.filter(({ status }) => status === 'opened').length
      return {
        verdict: `${counted(labs.length, 'lab')}, ${open} of them open`,
        data: {
          labs: labs.map(({ name, status, status_reason, counts, changed_at }) => ({
            name,
            status,
            ...(status_reason !== undefined && { status_reason }),
            ...counts,
            changed_at,
          })),
        },
      }
    },
  }),
  tool({
    name: 'inspect',
    title: 'Show a lab or a node',
    description:
      'Shows the nodes of a lab with their states, its links with verdict, impairment and frames, its snapshots, running jobs and tasks; or one node with all its settings and where its ports lead.',
    role: 'read',
    input: Type.Object(
      {
        ...labInput,
        node: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Only this node' })),
      },
      { additionalProperties: false },
    ),
    async run({ lab: word, node }, context) {
      const { client, signal } = context
      const whole = await wholeLab(word, context)
      const { lab, nodes, links } = whole
      if (node !== undefined) {
        const found = nodeNamed(node, whole)
        const own = links.filter((it) => it.nodes.some(({ node_id }) => node_id === found.node_id))
        const { ports, properties, after, ready, labels, compute_id, template_id } = found
        return {
          verdict: `${named(found.name)} is ${nodeRow(found).state}; ${counted(own.length, 'link')}`,
          data: {
            node: nodeRow(found),
            links: own.map((it) => linkRow(it, nodes)),
            ports: ports.map(({ short_name, link_type, mac_address }) => ({
              name: short_name,
              link_type,
              mac_address,
            })),
            settings: { compute_id, template_id, after, ready, labels, ...properties },
          },
        }
      }
      const params = { project_id: lab.project_id }
      const [snapshots, jobs, tasks] = await Promise.all([
        client.call('GET /v2/projects/{project_id}/snapshots', { params, signal }),
        client.call('GET /v2/jobs', { signal }),
        client.call('GET /v2/projects/{project_id}/tasks', { params, signal }),
      ])
      const running = jobs.filter(({ project_id, status }) => project_id === lab.project_id && status === 'running')
      return {
        verdict: `${labVerdict(whole)}${running.length === 0 ? '' : `; ${counted(running.length, 'job')} at work`}`,
        data: {
          lab: lab.name,
          revision: lab.revision,
          ...(lab.stop_at != null && { stop_at: lab.stop_at }),
          nodes: nodes.map(nodeRow),
          links: links.map((it) => linkRow(it, nodes)),
          snapshots: snapshots.map(({ name, running }) => ({ name, running })),
          jobs: running.map(({ action, total, done, failed }) => ({ action, total, done, failed })),
          ...(tasks.tasks.length > 0 && { tasks: tasks.tasks, score: { points: tasks.points, of: tasks.of } }),
        },
      }
    },
  }),
]
