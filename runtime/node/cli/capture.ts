import { linkText } from '../../../src/client/link-names.ts'
import { type LabLink, type LabNode, PatchbayError } from '../../../src/client/patchbay.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { type LinkTypeName, linkTypes, linkTypesOf } from '../../../src/model/capture.ts'
import { type CapturedFrame, CaptureReader } from '../../../src/packets/capture-reader.ts'
import { commentOfLinks } from '../../../src/packets/pcapng.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { pcapForm, pcapngForm, type Rotation, sinkOf } from './capture-sinks.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { capturing } from './command-flags.ts'
import { CommandError, type ExitCode, exits, wrongArguments } from './exits.ts'
import { linkOf } from './link.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf, linksOf } from './targets.ts'

/** What is captured, and where it comes from. */
interface Source {
  /** For people. */
  readonly name: string
  /** For programs. */
  readonly json: Readonly<Record<string, unknown>>
  readonly linkTypes: readonly LinkTypeName[]
  /** The lab, where its frames are of several links. */
  readonly lab?: string
  open(): Promise<ReadableStream<Uint8Array>>
}

/** `patchbay capture LAB[/LINK] ...`: the frames of links as decoded lines, or as pcap or pcapng into files or a pipe. */
export async function capture({ args, flags, signal }: CommandInput<typeof capturing>): Promise<CommandOutcome> {
  const { write, json } = flags
  const most = mostOf(flags.count)
  const rotation = rotationOf(flags.rotate, write)
  const isPiped = write === '-'
  if (isPiped && json) throw wrongArguments('-w - and --json both write to standard output')
  if (isPiped && process.stdout.isTTY)
    throw wrongArguments('-w - writes pcap to standard output, which is a terminal', 'use it with a pipe')
  const client = await clientOf(flags)
  const source = await sourceOf(args, flags['link-type'], { client, signal })
  const { name, lab } = source
  const matches = flags.filter === undefined ? undefined : await filterOf(flags.filter, source.linkTypes)
  const pcap = await source.open()
  const isWhole = matches === undefined && most === Number.POSITIVE_INFINITY
  const reader = new CaptureReader()
  const form =
    lab === undefined
      ? pcapForm(linkTypes[source.linkTypes[0] ?? 'DLT_EN10MB'])
      : pcapngForm(reader, commentOfLinks(lab))
  const nameOf = lab === undefined ? undefined : (number: number) => reader.interfaces[number]?.name ?? '?'
  const sink = await sinkOf(flags, { form, isWhole, rotation, nameOf })
  if (!isPiped && !json)
    process.stderr.write(`Capturing ${name}${write === undefined ? '' : ` into ${write}`}; Ctrl-C ends it\n`)
  let total = 0
  let exit: ExitCode = exits.done
  try {
    for await (const bytes of pcap) {
      const { lost } = reader
      const read = reader.push(bytes)
      const wanted = matches === undefined ? read : read.filter(matches)
      const frames = wanted.slice(0, most - total)
      total += frames.length
      await sink.write({ bytes: reader.whole, frames, hasLosses: reader.lost > lost })
      if (!json) for (const note of reader.notes.splice(0)) process.stderr.write(`${note}\n`)
      if (total >= most) break
    }
  } catch (error) {
    if (signal.aborted) exit = exits.interrupted
    else if (!isClosed(error)) throw lost(error, client.server)
  } finally {
    await sink.end().catch((error: unknown) => {
      if (!isClosed(error)) throw error
    })
  }
  const { skipped } = sink
  return {
    exit,
    json: {
      ...source.json,
      frames: total,
      lost: reader.lost,
      ...(write === undefined ? { skipped } : { file: write }),
    },
    text() {
      const hidden = skipped === 0 ? '' : `, ${skipped} of them not shown`
      const lost = reader.lost === 0 ? '' : `; ${reader.lost} more were lost because this client was too slow`
      if (!isPiped || lost !== '') process.stderr.write(`${counted(total, 'frame')}${hidden}${lost}\n`)
      return ''
    },
  }
}

/** What words name: one link, a lab, or several links of one lab. CommandError 1, 64. */
async function sourceOf(
  words: readonly string[],
  linkType: string | undefined,
  context: CommandContext,
): Promise<Source> {
  const { client, signal } = context
  const [first = ''] = words
  const isLink = (word: string) => /[/:]|--/.test(word)
  if (words.length === 1 && isLink(first)) {
    const { found, nodes } = await linkOf(first, context)
    const { project_id, link_id } = found
    const type = linkTypeOf(found, linkType)
    const name = linkText(found, nodes)
    return {
      ...{ name, json: { link: name, link_id }, linkTypes: [type] },
      open: () =>
        client.stream('POST /v2/projects/{project_id}/links/{link_id}/capture/stream', {
          ...{ params: { project_id, link_id }, body: { data_link_type: type, losses: true }, signal },
        }),
    }
  }
  if (linkType !== undefined) throw wrongArguments('--link-type is for one link')
  if (words.length > 1 && !words.every(isLink))
    throw wrongArguments('expected one lab, or links of one lab: LAB/LINK LAB/LINK ...')
  const links: { found: LabLink; nodes: LabNode[] }[] = []
  for (const word of isLink(first) ? words : []) links.push(await linkOf(word, context))
  const project_id = links[0]?.found.project_id ?? (await labOf(first, context)).project_id
  const lab = await labOf(project_id, context)
  if (links.some(({ found }) => found.project_id !== project_id))
    throw wrongArguments('the links are of several labs; one capture has links of one lab')
  const captured = links.length > 0 ? links.map(({ found }) => found) : await linksOf(lab, context)
  const ids = [...new Set(links.map(({ found }) => found.link_id))]
  return {
    name: `${counted(captured.length, 'link')} of ${lab.name}`,
    json: { lab: lab.name, project_id, links: captured.length },
    linkTypes: [...new Set(captured.map((it) => linkTypesOf[it.link_type][0]))],
    lab: lab.name,
    open: () =>
      client.stream('POST /v2/projects/{project_id}/capture/stream', {
        ...{ params: { project_id }, body: ids.length > 0 ? { links: ids } : {}, signal },
      }),
  }
}

/** `100MB/10`: when a file is full, and how many are kept. CommandError 64. */
function rotationOf(text: string | undefined, file: string | undefined): Rotation | undefined {
  if (text === undefined) return undefined
  if (file === undefined || file === '-') throw wrongArguments('--rotate needs -w FILE')
  const [, number = '', unit = '', files = ''] = /^([1-9]\d{0,5})(k|M|G)B\/([1-9]\d{0,3})$/.exec(text) ?? []
  const scale = { k: 1e3, M: 1e6, G: 1e9 }[unit]
  if (scale === undefined)
    throw wrongArguments(`--rotate: expected SIZE/FILES such as 100MB/10, got ${JSON.stringify(text)}`)
  return { bytes: Number(number) * scale, files: Number(files) }
}

/** How many frames the user wants. CommandError 64. */
function mostOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw wrongArguments(`--count: expected a number from 1, got ${JSON.stringify(text)}`)
}

function linkTypeOf({ link_type }: Pick<LabLink, 'link_type'>, given: string | undefined): LinkTypeName {
  if (given === undefined) return linkTypesOf[link_type][0]
  if (link_type === 'ethernet') throw wrongArguments('--link-type is for serial links; this link is Ethernet')
  return given === 'ppp' ? 'DLT_PPP_SERIAL' : 'DLT_C_HDLC'
}

/** Compiles an expression of tcpdump by libpcap of this machine, for each type of link. */
async function filterOf(
  expression: string,
  types: readonly LinkTypeName[],
): Promise<(frame: CapturedFrame) => boolean> {
  const [{ compileBpf }, { bpfMatcher }] = await Promise.all([
    import('../dataplane/bpf/compile.ts'),
    import('../dataplane/bpf/matcher.ts'),
  ])
  try {
    const matchers = new Map(types.map((it) => [linkTypes[it], bpfMatcher(compileBpf(expression, linkTypes[it]))]))
    return ({ bytes, linkType }) => matchers.get(linkType as 1)?.(bytes, 0, bytes.length) === true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 400) throw wrongArguments(`--filter: ${error.message}`)
    throw new CommandError(exits.failed, error.message)
  }
}

/** The reader of standard output has enough, as `head` has. */
const isClosed = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EPIPE'

/** What ended the stream: a file that cannot be written, or the way to the service. */
const lost = (cause: unknown, server: string): Error =>
  cause instanceof CommandError
    ? cause
    : new PatchbayError(`The service ${server} ended the capture: ${reasonOf(cause)}`, {
        status: 0,
        code: 'lost',
        cause,
      })
