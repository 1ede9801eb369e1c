import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Answer, Victim } from './service.ts'
import type { Tally } from './tally.ts'

/** null: it is not there. */
type Value = string | null

interface Entry {
  readonly what: string
  readonly path: string
  /** What it may be: one value when the last change was acknowledged or refused, more when nobody knows. */
  may: Set<Value>
  /** What it is by an answer. */
  readonly valueOf: (body: Buffer) => string
  /** What goes with it. */
  readonly below: Entry[]
}

const nameOf = (body: Buffer): string => String((JSON.parse(body.toString()) as { name: unknown }).name)
const digestOf = (body: Buffer): string => createHash('sha256').update(body).digest('hex')
const maxProjects = 6
const maxInProject = 12
/** Refusals that the disk, a keeper that was killed and requests that meet explain; the change was not made. */
const refusals = new Set([404, 408, 409, 413, 429, 503, 507])

/** Remembers what was acknowledged, and looks whether it is so. */
export class Oracle {
  readonly #victim: Victim
  readonly #random: Random
  readonly #tally: Tally
  readonly #projects: Entry[] = []
  readonly #images: Entry[] = []
  readonly #history = new Map<string, string[]>()

  constructor(victim: Victim, random: Random, tally: Tally) {
    this.#victim = victim
    this.#random = random
    this.#tally = tally
  }

  /** Creates, changes, uploads, deletes and looks, one after the other, until told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#step()
      await delay(this.#random.between(5, 60))
    }
  }

  /** Looks at everything, when nothing disturbs. */
  async verifyAll(): Promise<void> {
    for (const entry of [...this.#projects.flatMap((project) => [project, ...project.below]), ...this.#images])
      await this.#verify(entry, true)
  }

  /** What was done to a project, and how it was answered. */
  historyOf(project: string): string {
    return this.#history.get(project)?.slice(-8).join(', ') ?? 'not ours'
  }

  /** Deletes all projects. */
  async clear(): Promise<void> {
    for (const project of this.#projects) await this.#remove(project)
    await this.verifyAll()
  }

  async #step(): Promise<void> {
    const random = this.#random
    const there = this.#projects.filter(({ may }) => !may.has(null))
    const roll = random.next()
    const project = there.length === 0 ? undefined : random.one(there)
    if (project === undefined || (roll < 0.08 && this.#projects.length < 500 && there.length < maxProjects))
      return this.#createProject()
    const items = project.below.filter(({ may }) => !may.has(null))
    if (roll < 0.14 && there.length > 1) return this.#remove(project)
    if (roll < 0.22) return this.#change(project, random.uuid())
    if (roll < 0.45 && items.length < maxInProject) return this.#createNode(project)
    if (roll < 0.65) return this.#upload(project)
    if (roll < 0.7) return this.#uploadImage()
    if (items.length === 0) return
    const item = random.one(items)
    if (roll < 0.8 && item.what === 'node') return this.#remove(item)
    if (roll < 0.88 && item.what === 'node') return this.#change(item, random.uuid())
    await this.#verify(item, false)
  }

  async #createProject(): Promise<void> {
    const [id, name] = [this.#random.uuid(), this.#random.uuid()]
    const path = `/v2/compute/projects/${id}`
    const entry: Entry = { what: 'project', path, may: new Set([null]), valueOf: nameOf, below: [] }
    this.#projects.push(entry)
    await this.#try(entry, name, () => this.#victim.ask('POST', '/v2/compute/projects', { name, project_id: id }))
  }

  async #createNode(project: Entry): Promise<void> {
    const [id, name] = [this.#random.uuid(), this.#random.uuid()]
    const nodes = `${project.path}/pc/nodes`
    const entry: Entry = { what: 'node', path: `${nodes}/${id}`, may: new Set([null]), valueOf: nameOf, below: [] }
    project.below.push(entry)
    const startup_script = `set pcname ${name}\n`
    await this.#try(entry, name, () => this.#victim.ask('POST', nodes, { name, node_id: id, startup_script }))
  }

  async #upload(project: Entry): Promise<void> {
    const path = `${project.path}/files/file-${this.#random.below(4)}`
    let entry = project.below.find((it) => it.path === path)
    if (entry === undefined) {
      entry = { what: 'file', path, may: new Set([null]), valueOf: digestOf, below: [] }
      project.below.push(entry)
    }
    await this.#send(entry)
  }

  async #uploadImage(): Promise<void> {
    const path = `/v2/compute/machine-emulator/images/torture-${this.#random.below(3)}.img`
    let entry = this.#images.find((it) => it.path === path)
    if (entry === undefined) {
      entry = { what: 'image', path, may: new Set([null]), valueOf: digestOf, below: [] }
      this.#images.push(entry)
    }
    await this.#send(entry)
  }

  async #send(entry: Entry): Promise<void> {
    const body = Buffer.alloc(1 + this.#random.below(300_000), this.#random.uuid())
    await this.#try(entry, digestOf(body), () => this.#victim.ask('POST', entry.path, body))
  }

  async #change(entry: Entry, name: string): Promise<void> {
    await this.#try(entry, name, () => this.#victim.ask('PUT', entry.path, { name }))
  }

  async #remove(entry: Entry): Promise<void> {
    await this.#try(entry, null, () => this.#victim.ask('DELETE', entry.path))
  }

  async #try(entry: Entry, value: Value, send: () => Promise<Answer>): Promise<void> {
    const { ends } = this.#victim
    const verb = value === null ? 'delete' : entry.may.has(null) ? 'create' : 'change'
    this.#tally.tried(`${verb} ${entry.what}`)
    const before = [...entry.may]
    const { status, body } = await send()
    if (entry.what === 'project') this.#note(entry, `${verb} ${status}`)
    if (status < 0) return
    // A refusal of what somebody may just have done, or be doing, says nothing of it.
    const isSettled = before.length === 1 && this.#victim.ends === ends
    if (status >= 200 && status < 300) {
      entry.may = new Set([value])
      if (value === null) for (const it of entry.below) it.may = new Set([null])
      return
    }
    if (status !== 0 && !refusals.has(status)) this.#tally.lost(`${verb} ${entry.what}: ${status} ${body}`)
    if (status === 404 && value === null && !before.includes(null))
      this.#tally.lost(`delete ${entry.path}: 404, but it was there`)
    const isRefused = status !== 0 && isSettled && status !== 503
    if (status === 0 && this.#victim.ends === ends && this.#victim.isUp)
      this.#tally.lost(`${verb} ${entry.what}: no answer, though the service was not ended: ${body}`)
    if (isRefused) return
    entry.may.add(value)
    if (value === null) for (const it of entry.below) it.may.add(null)
  }

  #note({ path }: Entry, text: string): void {
    const id = path.split('/').at(-1) ?? ''
    this.#history.set(id, [...(this.#history.get(id) ?? []), text])
  }

  async #verify(entry: Entry, isFinal: boolean): Promise<void> {
    this.#tally.tried(`look at ${entry.what}`)
    const { status, body } = await this.#victim.ask('GET', entry.path)
    if (status <= 0 || (status === 503 && !isFinal)) {
      if (isFinal) this.#tally.lost(`GET ${entry.path}: ${status <= 0 ? 'no answer' : status}`)
      return
    }
    // An image that is missing is a conflict to whoever needs it.
    const isMissing = status === 404 || (status === 409 && entry.what === 'image')
    if (status !== 200 && !isMissing) return this.#tally.lost(`GET ${entry.path}: ${status} ${body}`)
    if (entry.what === 'project') this.#note(entry, `look ${status}`)
    const value = isMissing ? null : entry.valueOf(body)
    if (!entry.may.has(value)) {
      const may = [...entry.may].map((it) => it?.slice(0, 12) ?? 'nothing').join(' or ')
      this.#tally.lost(`${entry.what} ${entry.path} is ${value?.slice(0, 12) ?? 'not there'}, acknowledged was ${may}`)
    }
    entry.may = new Set([value])
    if (entry.what === 'project' && value === null) for (const it of entry.below) it.may = new Set([null])
  }
}
