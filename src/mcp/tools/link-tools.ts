import { Type } from '@sinclair/typebox'
import { endsText, linkState } from '../../client/link-names.ts'
import { changedFilters, impairmentText } from '../../labfile/changed-impairment.ts'
import { Impairment } from '../../labfile/schema.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { counted } from '../../lib/text/counted.ts'
import { linkTypesOf } from '../../model/capture.ts'
import { oneOf } from '../../model/schema/fields.ts'
import { type CapturedFrame, CaptureReader } from '../../packets/capture-reader.ts'
import { summarize } from '../../packets/decode.ts'
import { named } from '../parts/answer-text.ts'
import { labInput, linkInput, linkNamed, linkRow, type WholeLab, wholeLab } from '../parts/labs.ts'
import { type Tool, type ToolContext, tool } from '../parts/tool.ts'

const [defaultSeconds, longestSeconds] = [5, 60]
const [defaultCount, largestCount] = [50, 200]

const changes = {
  impairment: Type.Optional({
    ...Type.Object(Impairment.properties, { additionalProperties: false }),
    description: 'In the words of lab files, such as { delay: 40ms, loss: 1% }; 0 removes one; others stay',
  }),
  way: Type.Optional(oneOf(['there', 'back'], { description: 'The only direction that is impaired' })),
  clear: Type.Optional(Type.Boolean({ description: 'Whether all other impairment goes' })),
  suspend: Type.Optional(Type.Boolean({ description: 'true: all frames are dropped; false: they pass again' })),
}
const input = Type.Object({ ...labInput, ...linkInput, ...changes }, { additionalProperties: false })

/** The change of a link that a call asks for; undefined: none. */
async function changeOf(
  { lab, link, impairment, way, clear = false, suspend }: typeof input.static,
  context: ToolContext,
) {
  const whole = await wholeLab(lab, context)
  const found = linkNamed(link, whole)
  if (impairment === undefined && !clear && suspend === undefined) return { whole, found, change: undefined }
  const filters =
    impairment === undefined && !clear ? {} : changedFilters(found, impairment ?? {}, { way, clears: clear })
  return { whole, found, change: { ...filters, ...(suspend !== undefined && { suspend }) } }
}

/** How a link is, in a sentence. */
function linkVerdict(link: WholeLab['links'][number], { nodes }: WholeLab): string {
  const state = linkState(link)
  const passes = state === 'ok' ? 'passes frames' : `does not pass frames as it should (${state})`
  return `${named(endsText(link, nodes))} ${passes}; impairment: ${impairmentText(link)}`
}

export const linkTools: readonly Tool[] = [
  tool({
    name: 'link',
    title: 'Show or impair a link',
    description:
      'Says whether a link passes frames, and why not; with impairment, clear or suspend it changes what the link does to frames, while it runs.',
    role: 'operate',
    input,
    async plan(given, context) {
      const { whole, found, change } = await changeOf(given, context)
      if (change === undefined) return undefined
      const { link_id, suspend } = found
      const before = { impairment: impairmentText(found), suspend }
      return {
        sentence: `Change the link ${named(endsText(found, whole.nodes))}`,
        data: { link_id, before, after: { impairment: impairmentText({ ...found, ...change }), ...change } },
      }
    },
    async run(given, context) {
      const { client, signal } = context
      const { whole, found, change } = await changeOf(given, context)
      const params = { project_id: whole.lab.project_id, link_id: found.link_id }
      const now =
        change === undefined
          ? found
          : await client.call('PUT /v2/projects/{project_id}/links/{link_id}', { params, body: change, signal })
      return {
        verdict: linkVerdict(now, whole),
        done: change === undefined ? [] : [`Changed the link ${named(endsText(found, whole.nodes))}`],
        data: { link: linkRow(now, whole.nodes) },
      }
    },
  }),
  tool({
    name: 'packets',
    title: 'Capture frames',
    description:
      'Captures the frames that pass a link from now on, for some seconds or until there are enough, and gives each in a line: time, source, destination, protocol, summary. Nothing is left on the service.',
    role: 'operate',
    input: Type.Object(
      {
        ...labInput,
        ...linkInput,
        seconds: Type.Optional(
          Type.Number({
            minimum: 0.1,
            maximum: longestSeconds,
            default: defaultSeconds,
            description: 'Longest time, s',
          }),
        ),
        count: Type.Optional(
          Type.Integer({ minimum: 1, maximum: largestCount, default: defaultCount, description: 'Most frames' }),
        ),
        filter: Type.Optional(
          Type.String({ maxLength: 200, description: 'Words that a frame must all show, such as "icmp 10.0.0.2"' }),
        ),
      },
      { additionalProperties: false },
    ),
    async run({ lab, link, seconds = defaultSeconds, count = defaultCount, filter = '' }, context) {
      const whole = await wholeLab(lab, context)
      const found = linkNamed(link, whole)
      const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
      const rows: object[] = []
      let others = 0
      let first: CapturedFrame | undefined
      const lost = await watch(found, { seconds, context }, (frame) => {
        first ??= frame
        const row = rowOf(frame, first)
        const text = Object.values(row).join(' ').toLowerCase()
        if (!words.every((it) => text.includes(it))) others += 1
        else rows.push(row)
        return rows.length < count
      })
      return {
        verdict: `${counted(rows.length, 'frame')} on ${named(endsText(found, whole.nodes))}`,
        not_done: [
          ...(others > 0 ? [`${counted(others, 'frame')} not shown: without the words of the filter`] : []),
          ...(rows.length >= count ? [`What came after ${counted(count, 'frame')} was not captured`] : []),
          ...(lost > 0 ? [`${counted(lost, 'frame')} lost on the way`] : []),
        ],
        data: { frames: rows },
      }
    },
  }),
]

function rowOf(frame: CapturedFrame, first: CapturedFrame) {
  const { source, destination, protocol, info } = summarize(frame)
  const ms = (frame.seconds - first.seconds) * 1000 + (frame.nanos - first.nanos) / 1e6
  return { s: Math.round(ms) / 1000, source, destination, protocol, info }
}

/** Hands the frames of a link to `take` until it wants no more, or the time is over; the number of those that were lost. */
async function watch(
  { project_id, link_id, link_type }: WholeLab['links'][number],
  { seconds, context: { client, signal } }: { readonly seconds: number; readonly context: ToolContext },
  take: (frame: CapturedFrame) => boolean,
): Promise<number> {
  const over = new AbortController()
  const forget = onAbort(signal, () => over.abort())
  const timer = setTimeout(() => over.abort(), seconds * 1000)
  const reader = new CaptureReader()
  try {
    const pcap = await client.stream('POST /v2/projects/{project_id}/links/{link_id}/capture/stream', {
      params: { project_id, link_id },
      body: { data_link_type: linkTypesOf[link_type][0], losses: true },
      signal: over.signal,
    })
    const frames = pcap.getReader()
    onAbort(over.signal, () => {
      frames.cancel().catch(ignore('the capture has ended'))
    })
    for (;;) {
      const { done, value } = await frames.read()
      if (done) break
      if (!reader.push(value).every(take)) break
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!over.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    forget()
    over.abort()
  }
  return reader.lost
}
