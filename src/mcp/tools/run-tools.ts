import { Type } from '@sinclair/typebox'
import { stateOf } from '../../client/link-names.ts'
import { type LabNode, PatchbayError } from '../../client/patchbay.ts'
import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import { consoleText } from '../../lib/text/console-text.ts'
import { counted } from '../../lib/text/counted.ts'
import { ConsoleExpect, lineAnswer } from '../../model/console.ts'
import { named, someNamed } from '../parts/answer-text.ts'
import { defaultWithinS, isFailed, jobAtEnd, type KnownJob, notYet } from '../parts/jobs.ts'
import {
  labInput,
  labVerdict,
  nodeInput,
  nodeNamed,
  nodeRow,
  type WholeLab,
  wholeLab,
  withinInput,
} from '../parts/labs.ts'
import { type Tool, type ToolAnswer, type ToolContext, tool } from '../parts/tool.ts'
import { fileInput, readFile } from './file-tools.ts'

const someNodes = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    minItems: 1,
    maxItems: 1000,
    description: 'Names of nodes; absent: all nodes',
  }),
)
/** Most output that is shown, characters: its end. */
const maxOutput = 12_000
const [execWithinS, longestExecS] = [15, 300]

/** Starts or stops the nodes of a lab: both are the same but for words. */
const running = (action: 'start' | 'stop', about: Pick<Tool, 'title' | 'description' | 'isDestructive'>): Tool => {
  const wanted = action === 'start' ? 'started' : 'stopped'
  const others = (whole: WholeLab, names: readonly string[] | undefined): LabNode[] => {
    const chosen = names?.map((name) => nodeNamed(name, whole))
    return (chosen ?? whole.nodes.filter(({ node_type }) => !isSegmentKind(node_type))).filter(
      ({ status }) => status !== wanted,
    )
  }
  return tool({
    name: action,
    ...about,
    role: 'operate',
    input: Type.Object(
      { ...labInput, nodes: someNodes, within_s: withinInput(defaultWithinS) },
      { additionalProperties: false },
    ),
    async plan({ lab, nodes }, context) {
      const whole = await wholeLab(lab, context)
      const left = others(whole, nodes)
      const opens = action === 'start' && whole.lab.status !== 'opened'
      return {
        sentence: `${opens ? 'Open the lab and ' : ''}${action} ${counted(left.length, 'node')} of ${named(whole.lab.name)}`,
        data: { lab: whole.lab.name, opens, nodes: left.map(({ name, status }) => ({ name, status })) },
      }
    },
    async run({ lab: word, nodes: names, within_s = defaultWithinS }, context) {
      const { client, signal } = context
      const until = Date.now() + within_s * 1000
      const before = await wholeLab(word, context)
      const params = { project_id: before.lab.project_id }
      const isClosed = before.lab.status !== 'opened'
      if (isClosed && action === 'stop')
        return { verdict: `The lab ${named(before.lab.name)} is closed: none of its nodes run` }
      if (isClosed) await client.call('POST /v2/projects/{project_id}/open', { params, signal })
      const nodes = names?.map((name) => nodeNamed(name, before).node_id)
      const left = others(before, names)
      const body = { action, ...(nodes !== undefined && { nodes }) }
      const { job_id } = await client.call('POST /v2/projects/{project_id}/jobs', { params, body, signal })
      const doing = action === 'start' ? 'starting' : 'stopping'
      const job = await jobAtEnd(job_id, context, { doing, ...params, until })
      const after = await wholeLab(before.lab.project_id, context)
      const stillLeft = others(after, names)
      const done = left.filter(({ node_id }) => !stillLeft.some((it) => it.node_id === node_id))
      const nodesOfJob = typeof job === 'string' ? [] : job.nodes
      const failed = nodesOfJob.filter(({ state }) => state === 'failed' || state === 'skipped')
      return {
        verdict: labVerdict(after),
        done: [
          ...(isClosed ? [`Opened the lab ${named(before.lab.name)}`] : []),
          ...(done.length > 0 ? [`${wanted}: ${someNamed(done.map(({ name }) => name))}`] : []),
        ],
        not_done: [
          ...(stillLeft.length > 0 ? [`Not ${wanted}: ${someNamed(stillLeft.map(({ name }) => name))}`] : []),
          ...(failed.length > 0 ? [`Failed: ${someNamed(failed.map(({ name }) => name))}`] : []),
          ...notYet(job),
        ],
        data: {
          nodes: after.nodes.map(nodeRow),
          failed: failed.map(({ name, state, reason }) => ({ name, state, reason })),
        },
        isError: isFailed(job),
      }
    },
  })
}

/** A node with a console of text that runs. 409. */
async function nodeToAsk(lab: string, node: string, context: ToolContext): Promise<LabNode> {
  const found = nodeNamed(node, await wholeLab(lab, context))
  if (found.status === 'started') return found
  throw conflict(`The node ${named(found.name)} is ${stateOf(found)}: start it first`)
}

export const runTools: readonly Tool[] = [
  running('start', {
    title: 'Start nodes',
    description: 'Opens a lab, starts all its nodes or some in order, and waits until they are ready.',
  }),
  running('stop', {
    title: 'Stop nodes',
    description: 'Stops all nodes of a lab, or some. Disks and configurations are kept.',
    isDestructive: true,
  }),
  tool({
    name: 'exec',
    title: 'Type on a console',
    description:
      'Types a line on the console of a node and gives what the node answers: until the output matches `expect`, or else until the console is quiet. Without `line` it types nothing: with `expect` it waits for output, without it gives the last lines.',
    role: 'operate',
    isDestructive: true,
    input: Type.Object(
      {
        ...nodeInput,
        line: Type.Optional(
          Type.String({ maxLength: 4096, description: 'Typed with a carriage return; empty: that alone' }),
        ),
        expect: Type.Optional({ ...ConsoleExpect.properties.expect, description: 'Regular expression (RE2)' }),
        within_s: withinInput(execWithinS, longestExecS),
        lines: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 1000,
            default: 50,
            description: 'Without line and expect: how many lines',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    async plan({ lab, node, line }, context) {
      if (line === undefined) return undefined
      const { name, node_id, status } = await nodeToAsk(lab, node, context)
      return { sentence: `Type a line on the console of ${named(name)}`, data: { node_id, name, status, line } }
    },
    async run({ lab, node, line, expect, within_s = execWithinS, lines = 50 }, context) {
      const { client, signal } = context
      const { name, node_id, project_id } = await nodeToAsk(lab, node, context)
      const params = { project_id, node_id }
      if (line === undefined && expect === undefined) {
        const query = { lines: String(lines) }
        const call = 'GET /v2/projects/{project_id}/nodes/{node_id}/console/log'
        const text = await new Response(await client.stream(call, { params, query, signal })).text()
        return { verdict: `The last lines of the console of ${named(name)}`, data: { output: endOf(text) } }
      }
      const body = {
        ...(line !== undefined && { send: `${line}\r`, echoes: true }),
        ...(expect === undefined ? { quiet_s: lineAnswer.quietMs / 1000 } : { expect }),
        within_s,
      }
      const call = 'POST /v2/projects/{project_id}/nodes/{node_id}/console/expect'
      const typed = line === undefined ? [] : [`Typed the line on the console of ${named(name)}`]
      const answer = await client
        .call(call, { params, body, signal, timeoutMs: (within_s + 30) * 1000 })
        .catch((error: unknown) => notShown(error, named(name), typed))
      if ('verdict' in answer) return answer
      const { matched, before } = answer
      const output = endOf(before + matched)
      const said = output === '' ? 'has shown nothing' : 'has answered'
      return {
        verdict: `${named(name)} ${expect === undefined ? said : 'has shown what was expected'}`,
        done: typed,
        data: { output, ...(expect !== undefined && { matched }) },
      }
    },
  }),
  tool({
    name: 'check',
    title: 'Run checks',
    description:
      'Runs the checks of a lab file on the running lab of its name, or without a file the tasks of a lab, and says which hold and what was seen instead.',
    role: 'operate',
    input: Type.Object(
      {
        ...labInput,
        ...fileInput,
        file: Type.Optional({
          ...fileInput.file,
          description: 'The lab file with the checks; absent: the tasks of the lab',
        }),
        within_s: withinInput(defaultWithinS),
      },
      { additionalProperties: false },
    ),
    async plan({ lab: word, file, ...given }, context) {
      if (file === undefined) return undefined
      const { lab } = await wholeLab(word, context)
      const { checks } = await readFile({ file, ...given }, context)
      return {
        sentence: `Run ${counted(checks.length, 'check')} on ${named(lab.name)}, which type on consoles of its nodes`,
        data: { lab: lab.name, checks },
      }
    },
    async run({ lab, file, files, vars, within_s = defaultWithinS }, context) {
      const { client, signal } = context
      const until = Date.now() + within_s * 1000
      const params = { project_id: lab }
      const { job_id } =
        file === undefined
          ? await client.call('POST /v2/projects/{project_id}/tasks/check', { params, signal })
          : await client.call('POST /v2/projects/{project_id}/checks', {
              params,
              body: { document: file, ...(files && { files }), ...(vars && { vars }) },
              signal,
            })
      const job = await jobAtEnd(job_id, context, { doing: 'checking', ...params, until })
      return checkAnswer(job)
    },
  }),
]

/** The answer when a node does not show what it was asked for. Throws errors that say nothing about the node. */
function notShown(error: unknown, node: string, typed: readonly string[]): ToolAnswer {
  if (!(error instanceof PatchbayError)) throw error
  const { code, message } = error
  const data = { reason: message }
  if (code === 'not-in-time')
    return { verdict: `${node} has not shown what was expected in time`, done: typed, data, isError: true }
  if (code === 'node-stopped') return { verdict: `${node} stopped before it answered`, data, isError: true }
  throw error
}

function checkAnswer(job: KnownJob): ToolAnswer {
  if (job === 'gone') return { verdict: 'The lab is gone, and its checks with it', isError: true }
  if (job === 'forgotten') return { verdict: 'Not known which checks hold', not_done: notYet(job), isError: true }
  if (job === 'unheard') return { verdict: 'The checks go on', not_done: notYet(job) }
  const { checks = [], tasks, reason, status } = job
  const results = checks.map(({ name, state, saw }) => ({ name, state, ...(saw !== null && { saw }) }))
  const bad = results.filter(({ state }) => state !== 'ok')
  const holding = bad.length === 0 && status === 'done' ? 'All' : `${results.length - bad.length} of`
  const ended =
    tasks === undefined
      ? `${holding} ${results.length} checks hold`
      : `${tasks.filter(({ state }) => state === 'done').length} of ${tasks.length} tasks are done`
  return {
    verdict: status === 'running' ? 'The checks go on' : ended,
    done: results.filter(({ state }) => state === 'ok').map(({ name }) => `holds: ${named(name)}`),
    not_done: [...bad.map(({ name, state }) => `${state}: ${named(name)}`), ...notYet(job)],
    data: { checks: results, ...(tasks !== undefined && { tasks }), ...(reason !== null && { reason }) },
    isError: isFailed(job),
  }
}

/** The end of the output of a console, without what controls a terminal. */
function endOf(output: string): string {
  const text = consoleText(output).trim()
  return text.length > maxOutput
    ? `[${text.length - maxOutput} characters before this are left out]\n${text.slice(-maxOutput)}`
    : text
}
