import { type LabLink, PatchbayError } from '../../../src/client/patchbay.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { type LinkTypeName, linkTypes, linkTypesOf } from '../../../src/model/capture.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import type { Matcher } from '../dataplane/bpf/matcher.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { sinkOf } from './capture-sinks.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { capturing } from './command-flags.ts'
import { CommandError, type ExitCode, exits, wrongArguments } from './exits.ts'
import { linkOf } from './link.ts'
import type { CommandOutcome } from './outcome.ts'
import { linkText } from './targets.ts'

/** `patchbay capture LAB/LINK`: the frames of a link as decoded lines, or as pcap into a file or a pipe. */
export async function capture({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof capturing>): Promise<CommandOutcome> {
  const { write, json } = flags
  const most = mostOf(flags.count)
  const isPiped = write === '-'
  if (isPiped && json) throw wrongArguments('-w - and --json both write to standard output')
  if (isPiped && process.stdout.isTTY)
    throw wrongArguments('-w - writes pcap to standard output, which is a terminal', 'use it with a pipe')
  const client = await clientOf(flags)
  const { found, nodes } = await linkOf(word, { client, signal })
  const linkType = linkTypeOf(found, flags['link-type'])
  const matches = flags.filter === undefined ? undefined : await filterOf(flags.filter, linkType)
  const params = { project_id: found.project_id, link_id: found.link_id }
  const body = { data_link_type: linkType, losses: true }
  const pcap = await client.stream('POST /v2/projects/{project_id}/links/{link_id}/capture/stream', {
    params,
    body,
    signal,
  })
  const isWhole = matches === undefined && most === Number.POSITIVE_INFINITY
  const sink = await sinkOf(flags, isWhole, linkTypes[linkType])
  const name = linkText(found, nodes)
  if (!isPiped && !json)
    process.stderr.write(`Capturing ${name}${write === undefined ? '' : ` into ${write}`}; Ctrl-C ends it\n`)
  const reader = new CaptureReader()
  let total = 0
  let exit: ExitCode = exits.done
  try {
    for await (const bytes of pcap) {
      const { lost } = reader
      const read = reader.push(bytes)
      const wanted = matches === undefined ? read : read.filter((it) => matches(it.bytes, 0, it.bytes.length))
      const frames = wanted.slice(0, most - total)
      total += frames.length
      await sink.write({ bytes: reader.whole, frames, hasLosses: reader.lost > lost })
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
      link: name,
      link_id: found.link_id,
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

/** Compiles an expression of tcpdump by libpcap of this machine. */
async function filterOf(expression: string, linkType: LinkTypeName): Promise<Matcher> {
  const [{ compileBpf }, { bpfMatcher }] = await Promise.all([
    import('../dataplane/bpf/compile.ts'),
    import('../dataplane/bpf/matcher.ts'),
  ])
  try {
    return bpfMatcher(compileBpf(expression, linkTypes[linkType]))
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
