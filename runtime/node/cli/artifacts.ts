import { type FileHandle, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LabPlan } from '../../../src/client/patchbay.ts'
import { isSegmentKind } from '../../../src/labfile/segment-kinds.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { maxStreamedLinks } from '../../../src/model/capture.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { commentOfLinks } from '../../../src/packets/pcapng.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { pcapngForm, sinkOf } from './capture-sinks.ts'
import type { CommandContext } from './client.ts'
import { wrongArguments } from './exits.ts'
import { linkJson, nodeJson } from './inspect.ts'
import { labOf, linksOf, nameOrder, nodesOf } from './targets.ts'

/** Most bytes of the capture of a lab, and of its events: a runner of a CI system stores them. */
const [maxCapture, maxEvents] = [100_000_000, 10_000_000]
/** How long a capture goes on after the last check, ms: frames are held back until their order is certain. */
const drainMs = 400

/** What the directory of a lab may have. One with anything else is not of an earlier run, and stays as it is. */
const ownNames = ['plan.json', 'lab.json', 'links.pcapng', 'events.jsonl', 'consoles']

/** A directory for what failed tests leave behind. */
export class ArtifactDirectory {
  readonly #path: string
  readonly #taken = new Set<string>()

  private constructor(path: string) {
    this.#path = path
  }

  /** Makes the directory, before the tests. CommandError 64 when it cannot be written. */
  static async open(path: string): Promise<ArtifactDirectory> {
    try {
      await mkdir(path, { recursive: true })
      const trial = join(path, `.${process.pid}`)
      await writeFile(trial, '')
      await rm(trial)
    } catch (error) {
      throw wrongArguments(`--artifacts: ${path}: ${reasonOf(error)}`)
    }
    return new ArtifactDirectory(path)
  }

  /** The artifacts of a lab, which has no directory before its test begins. */
  of(lab: string, context: CommandContext): Artifacts {
    return new Artifacts(() => this.#make(lab), lab, context)
  }

  /**
   * Makes the directory of a lab: of its name, or its name and a number where two files name their labs alike, or something else is there. That
   * of an earlier run is replaced.
   */
  async #make(lab: string): Promise<string> {
    for (;;) {
      const directory = join(this.#path, freeName(lab, this.#taken))
      const entries = await readdir(directory).catch((error: NodeJS.ErrnoException) => error.code)
      if (Array.isArray(entries) && entries.every((it) => ownNames.includes(it)))
        await rm(directory, { recursive: true })
      else if (entries !== 'ENOENT') continue
      await mkdir(join(directory, 'consoles'), { recursive: true })
      return directory
    }
  }
}

/**
 * What the test of a lab leaves behind if it fails: `plan.json`, `lab.json` (its nodes and links at the end), `links.pcapng` (the frames
 * of all links since before the start), `events.jsonl`, and `consoles/NODE.log`. A file that cannot be written is reported on standard
 * error, and does not change the result of the test.
 */
export class Artifacts {
  readonly #make: () => Promise<string>
  readonly #lab: string
  readonly #context: CommandContext
  readonly #ending = new AbortController()
  #plan: LabPlan | undefined
  #directory = ''
  #isKept = false
  #streams: Promise<unknown> = Promise.resolve()

  constructor(make: () => Promise<string>, lab: string, context: CommandContext) {
    this.#make = make
    this.#lab = lab
    this.#context = context
  }

  /** The directory, if there is something in it. */
  get directory(): string | undefined {
    return this.#isKept ? this.#directory : undefined
  }

  /** Begins to capture the links of the lab and to store its events, before its nodes are started. */
  async begin(plan: LabPlan): Promise<void> {
    await this.#trying('', async () => {
      this.#directory = await this.#make()
    })
    if (this.#directory === '') return
    this.#plan = plan
    const streams: Promise<void>[] = []
    /** Resolves when the stream has begun, or cannot. */
    const begins = (name: string, stream: (begun: () => void) => Promise<void>) =>
      new Promise<void>((resolve) => {
        streams.push(this.#trying(name, () => stream(resolve)).finally(resolve))
      })
    const both = [
      begins('links.pcapng', (begun) => this.#capture(plan, begun)),
      begins('events.jsonl', (begun) => this.#events(plan, begun)),
    ]
    this.#streams = Promise.all(streams)
    await Promise.all(both)
  }

  /** Ends; keeps the files only if the test has failed. The lab must still exist. */
  async end(hasFailed: boolean): Promise<void> {
    const plan = this.#plan
    const { signal } = this.#context
    if (plan === undefined) return
    if (hasFailed && !signal.aborted) {
      await this.#trying('lab.json', () => this.#state(plan))
      await sleep(drainMs, undefined, { signal }).catch(ignore('the test was interrupted'))
    }
    this.#ending.abort()
    await this.#streams
    if (!hasFailed) return this.#trying('', () => rm(this.#directory, { recursive: true }))
    this.#isKept = true
    await this.#trying('plan.json', () => this.#write('plan.json', plan))
  }

  async #capture({ project_id, lab }: LabPlan, begun: () => void): Promise<void> {
    const { client } = this.#context
    const signal = this.#ending.signal
    const params = { project_id }
    const all = await client.call('GET /v2/projects/{project_id}/links', { params, signal })
    if (all.length === 0) return
    const links = all.slice(0, maxStreamedLinks).map(({ link_id }) => link_id)
    const input = { params, body: { links }, signal }
    const stream = await client.stream('POST /v2/projects/{project_id}/capture/stream', input)
    const reader = new CaptureReader()
    const write = join(this.#directory, 'links.pcapng')
    const form = pcapngForm(reader, commentOfLinks(lab))
    const sink = await sinkOf({ write, json: false }, { form, isWhole: true })
    begun()
    let size = 0
    try {
      for await (const bytes of stream) {
        const { lost } = reader
        const frames = reader.push(bytes)
        await sink.write({ bytes: reader.whole, frames, hasLosses: reader.lost > lost })
        size += reader.whole.length
        if (size > maxCapture) throw new Error(`it ends after ${maxCapture / 1e6} MB`)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      await sink.end()
    }
  }

  async #events({ project_id }: LabPlan, begun: () => void): Promise<void> {
    const { signal } = this.#ending
    const file: FileHandle = await open(join(this.#directory, 'events.jsonl'), 'w')
    let size = 0
    try {
      for await (const line of this.#context.client.feed({ project: project_id, signal })) {
        // The first line, a ping, says that the feed has begun.
        begun()
        const text = `${JSON.stringify(line)}\n`
        size += Buffer.byteLength(text)
        if (size > maxEvents) throw new Error(`it ends after ${maxEvents / 1e6} MB`)
        await file.write(text)
      }
    } finally {
      await file.close()
    }
  }

  /** The nodes and links as they are, and the consoles. */
  async #state({ project_id }: LabPlan): Promise<void> {
    const { client, signal } = this.#context
    const lab = await labOf(project_id, this.#context)
    const [found, links] = await Promise.all([nodesOf(lab, this.#context), linksOf(lab, this.#context)])
    const nodes = found.toSorted((one, other) => nameOrder.compare(one.name, other.name))
    await this.#write('lab.json', { nodes: nodes.map(nodeJson), links: links.map((it) => linkJson(it, nodes)) })
    const taken = new Set<string>()
    const withText = nodes.filter((it) => it.console_type === 'telnet' && !isSegmentKind(it.node_type))
    await mapLimit(withText, async ({ name, node_id }) => {
      const file = join('consoles', `${freeName(name, taken)}.log`)
      await this.#trying(file, async () => {
        const input = { params: { project_id, node_id }, signal }
        const { body } = await client.answer('GET /v2/projects/{project_id}/nodes/{node_id}/console/log', input)
        await writeFile(join(this.#directory, file), new Uint8Array(await new Response(body).arrayBuffer()))
      })
    })
  }

  #write(file: string, value: object): Promise<void> {
    return writeFile(join(this.#directory, file), `${JSON.stringify(value, null, 2)}\n`)
  }

  async #trying(file: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (this.#context.signal.aborted) return
      const where = join(this.#directory, file)
      process.stderr.write(`${escapeUnsafe(`${this.#lab}: ${where}: ${reasonOf(error)}`)}\n`)
    }
  }
}

/** A name for a file that no other has, of a name that may have any characters. */
function freeName(name: string, taken: Set<string>): string {
  const plain = name
    .replace(/[^\w.-]/g, '_')
    .replace(/^\.+/, '_')
    .slice(0, 80)
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? plain : `${plain}-${number}`
    if (taken.has(free.toLowerCase())) continue
    taken.add(free.toLowerCase())
    return free
  }
}
