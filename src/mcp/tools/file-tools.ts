import { type Static, Type } from '@sinclair/typebox'
import type { LabJob, LabPlan } from '../../client/patchbay.ts'
import { labFileSchema } from '../../labfile/json-schema.ts'
import { badRequest } from '../../lib/errors/api-error.ts'
import { omit } from '../../lib/omit.ts'
import { counted } from '../../lib/text/counted.ts'
import { applyOptions, LabApply } from '../../model/lab/topology.ts'
import { named, someNamed } from '../parts/answer-text.ts'
import { defaultWithinS, isFailed, jobAtEnd, type KnownJob, notYet } from '../parts/jobs.ts'
import { labVerdict, linkRow, nodeRow, wholeLab, withinInput } from '../parts/labs.ts'
import { type Tool, type ToolAnswer, type ToolContext, tool } from '../parts/tool.ts'

const { files, vars } = LabApply.properties
/** A lab file in the input of a tool. */
export const fileInput = {
  file: Type.String({ maxLength: 1 << 20, description: 'The text of the lab file: YAML or JSON' }),
  files,
  vars,
}
// A file that has to be trusted is applied by a person.
const { trust: _, ...options } = applyOptions
const applied = Type.Object({ ...fileInput, ...options }, { additionalProperties: false })
type Applied = Static<typeof applied>

/** A lab file that was read. ApiError with all that is wrong in it. */
export const readFile = (
  { file, files = {}, vars = {} }: Pick<Applied, 'file' | 'files' | 'vars'>,
  { read }: Pick<ToolContext, 'read'>,
) => read('labFile', { document: file, files, vars })

/** Asks for the plan of a file, or has it applied. */
async function put(input: Applied, context: ToolContext, dry_run: 'true' | 'false'): Promise<LabPlan> {
  const { lab } = await readFile(input, context)
  const { file: document, ...others } = input
  return context.client.call('PUT /v2/projects/{project_id}/topology', {
    params: { project_id: lab },
    query: { dry_run },
    body: { document, ...others },
    signal: context.signal,
  })
}

const stepText = ({ do: what, what: kind, how }: LabPlan['steps'][number]) => `${what} ${kind} (${how})`

/** A plan in the data of an answer. */
const planData = ({ lab, steps, withheld, extra, cannot_run }: LabPlan) => ({
  lab,
  steps: steps.map((step) => ({ step: stepText(step), name: step.name, because: step.because })),
  withheld: withheld.map((step) => ({
    step: stepText(step),
    name: step.name,
    because: step.because,
    needs: step.flag,
  })),
  extra,
  ...(cannot_run !== undefined && { cannot_run }),
})

const planSentence = ({ lab, steps, withheld }: LabPlan): string =>
  steps.length + withheld.length === 0
    ? `The lab ${named(lab)} is what the file says: nothing would change`
    : `${counted(steps.length, 'step')} for the lab ${named(lab)}, ${withheld.length} withheld`

/** What a plan leaves as it is, in sentences. */
const leftBy = ({ withheld, extra, cannot_run = [] }: LabPlan): string[] => [
  ...[...new Set(withheld.map(({ flag }) => flag))].map(
    (flag) => `${counted(withheld.filter((it) => it.flag === flag).length, 'step')} withheld: needs ${flag}: true`,
  ),
  ...(extra.length > 0 ? [`${counted(extra.length, 'object')} of the lab not in the file: stay as they are`] : []),
  ...(cannot_run.length > 0 ? [`${counted(cannot_run.length, 'node')} only placeholders: an image is missing`] : []),
]

type JsonSchema = Readonly<Record<string, unknown>>

/** Characters of a section of the schema that is a part of its own. */
const largeSection = 1500

/** The schema of lab files in parts: its definitions and its large sections, which an answer could not have all at once. */
function schemaParts(): { top: JsonSchema; parts: Readonly<Record<string, unknown>> } {
  const { definitions, properties, ...top } = labFileSchema() as Readonly<Record<string, JsonSchema>>
  const sections = Object.entries(properties ?? {})
  const large = sections.filter(([, it]) => JSON.stringify(it).length > largeSection)
  const named = Object.fromEntries(large.map(([name]) => [name, { description: `See the part ${name}` }]))
  return {
    top: { ...top, properties: { ...properties, ...named } },
    parts: { ...definitions, ...Object.fromEntries(large) },
  }
}

export const fileTools: readonly Tool[] = [
  tool({
    name: 'schema',
    title: 'Schema of lab files',
    description: 'The JSON Schema of lab files: what a lab file has, or one of its parts, such as a kind of node.',
    role: 'read',
    input: Type.Object(
      { part: Type.Optional(Type.String({ maxLength: 100, description: 'A definition, such as pc, qemu or switch' })) },
      { additionalProperties: false },
    ),
    async run({ part }) {
      const { top, parts } = schemaParts()
      const names = Object.keys(parts)
      if (part === undefined)
        return { verdict: `A lab file; the parts are ${names.join(', ')}`, data: { schema: top, parts: names } }
      if (!Object.hasOwn(parts, part))
        throw badRequest(`part: there is no ${named(part)}; expected one of ${names.join(', ')}`)
      return { verdict: `The part ${part} of lab files`, data: { schema: parts[part] } }
    },
  }),
  tool({
    name: 'validate',
    title: 'Check a lab file',
    description: 'Checks a lab file and changes nothing. What is wrong has line, column and hint.',
    role: 'read',
    input: Type.Object(fileInput, { additionalProperties: false }),
    async run(input, context) {
      const { lab, nodes, links, checks } = await readFile(input, context)
      return {
        verdict: `The file is valid: ${counted(nodes.length, 'node')}, ${counted(links.length, 'link')}, ${counted(checks.length, 'check')}`,
        not_done: ['Images were not looked for: "plan" says whether they are there'],
        data: { lab },
      }
    },
  }),
  tool({
    name: 'plan',
    title: 'Plan a lab file',
    description: 'Says which steps "apply" would run for a lab file, and changes nothing.',
    role: 'operate',
    input: applied,
    async run(input, context) {
      const plan = await put(input, context, 'true')
      return { verdict: planSentence(plan), not_done: leftBy(plan), data: planData(plan) }
    },
  }),
  tool({
    name: 'apply',
    title: 'Apply a lab file',
    description:
      'Makes or changes the lab of a lab file: all steps or none. With start: true its nodes are started, and it waits until they are ready. Steps that restart running nodes, lose disks or delete need an option.',
    role: 'operate',
    isDestructive: true,
    input: Type.Object(
      { ...applied.properties, within_s: withinInput(defaultWithinS) },
      { additionalProperties: false },
    ),
    async plan(input, context) {
      const plan = await put(omit(input, 'within_s'), context, 'true')
      const start = input.start === true ? ', and start its nodes' : ''
      return {
        sentence: `${planSentence(plan)}${start}`,
        data: { ...planData(plan), revision: plan.revision, start: input.start === true },
      }
    },
    async run({ within_s = defaultWithinS, ...input }, context) {
      const until = Date.now() + within_s * 1000
      const plan = await put(input, context, 'false')
      return applyAnswer(plan, await jobOf(plan, context, until), context)
    },
  }),
]

/** Waits for the jobs of an apply: that of the steps, and that of the starts. The last of them; undefined: it needed none. */
async function jobOf(
  { job_id, project_id }: LabPlan,
  context: ToolContext,
  until: number,
): Promise<KnownJob | undefined> {
  if (job_id === undefined) return undefined
  // The job of the steps runs until that of the starts has ended.
  const isOver = ({ status, start_job_id }: LabJob) => status !== 'running' || start_job_id !== undefined
  const steps = await jobAtEnd(job_id, context, { doing: 'applying', project_id, until, isOver })
  if (typeof steps === 'string' || steps.start_job_id === undefined) return steps
  return jobAtEnd(steps.start_job_id, context, { doing: 'starting', project_id, until })
}

async function applyAnswer(plan: LabPlan, job: KnownJob | undefined, context: ToolContext): Promise<ToolAnswer> {
  if (job === 'gone')
    return { verdict: 'Failed: the steps were undone, and the new lab is gone', data: planData(plan), isError: true }
  const not_done = [...leftBy(plan), ...(job === undefined ? [] : notYet(job))]
  if (job === 'forgotten')
    return { verdict: 'Not known whether the steps were done', not_done, data: planData(plan), isError: true }
  if (typeof job === 'object' && isFailed(job)) {
    const { action, reason, nodes, steps = [] } = job
    const isOfSteps = action === 'apply'
    return {
      verdict: isOfSteps ? 'Failed: the steps were undone' : 'The lab was made, but not all of its nodes are ready',
      done: isOfSteps ? [] : [`${counted(plan.steps.length, 'step')} run`],
      not_done: [...not_done, ...(nodes.length > 0 ? [`Nodes: ${someNamed(nodes.map(({ name }) => name))}`] : [])],
      data: { reason, nodes: nodes.map(({ name, state, reason }) => ({ name, state, reason })), steps },
      isError: true,
    }
  }
  const whole = await wholeLab(plan.project_id, context)
  return {
    verdict: labVerdict(whole),
    done: [plan.steps.length === 0 ? 'Nothing had to change' : `${counted(plan.steps.length, 'step')} run`],
    not_done,
    data: {
      ...planData(plan),
      nodes: whole.nodes.map(nodeRow),
      links: whole.links.map((it) => linkRow(it, whole.nodes)),
    },
  }
}
