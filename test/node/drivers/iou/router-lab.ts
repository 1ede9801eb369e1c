import { randomUUID } from 'node:crypto'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import type { IouNode } from '../../../../src/model/kinds/iou.ts'
import { IouConsole, iourc, netioDirectory, standIn } from '../../../support/iou.ts'
import { runRoutersAlone } from '../../../support/routers-alone.ts'
import { TestService } from '../../../support/service.ts'

runRoutersAlone()

export const imageName = 'i86bi-stand-in.bin'

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** One service with the stand-in among its images for the tests of a file. */
export function sharedService(more: Record<string, unknown> = {}): () => TestService {
  let service: TestService | undefined
  beforeAll(async () => {
    service = await TestService.startForAll({ ...more })
    await addImage(service)
  })
  afterAll(() => service?.close())
  return () => {
    if (service === undefined) throw new Error('the service is started before the tests')
    return service
  }
}

export async function addImage(service: TestService, name = imageName): Promise<string> {
  const file = join(service.data, 'images/iou', name)
  await copyFile(await standIn(), file)
  return file
}

/** A project of routers. */
export class RouterLab {
  readonly service: TestService
  readonly id: string

  private constructor(service: TestService, id: string) {
    this.service = service
    this.id = id
  }

  static async create(service: TestService, id: string = randomUUID()): Promise<RouterLab> {
    await service.call('POST', '/v2/compute/projects', { name: 'lab', project_id: id })
    return new RouterLab(service, id)
  }

  get path(): string {
    return `/v2/compute/projects/${this.id}`
  }

  /** A router that has a licence. */
  async router(settings: Record<string, unknown> = {}): Promise<Router> {
    const wanted = { name: 'R1', path: imageName, iourc_content: iourc(), ...settings }
    const { node_id } = await this.service.call<IouNode>('POST', `${this.path}/iou/nodes`, wanted)
    return new Router(this, node_id)
  }

  close(): Promise<unknown> {
    return this.service.call('POST', `${this.path}/close`)
  }

  open(): Promise<unknown> {
    return this.service.call('POST', '/v2/compute/projects', { project_id: this.id, name: 'lab' })
  }

  remove(): Promise<unknown> {
    return this.service.call('DELETE', this.path)
  }
}

export class Router {
  readonly lab: RouterLab
  readonly id: string

  constructor(lab: RouterLab, id: string) {
    this.lab = lab
    this.id = id
  }

  get path(): string {
    return `${this.lab.path}/iou/nodes/${this.id}`
  }

  get directory(): string {
    return join(this.lab.service.data, 'projects', this.lab.id, 'project-files/iou', this.id)
  }

  file(name: string): string {
    return join(this.directory, name)
  }

  view(): Promise<IouNode> {
    return this.lab.service.call('GET', this.path)
  }

  /** Any action with what it was answered. */
  async do(action: string, body: unknown = {}): Promise<Answer> {
    const text = JSON.stringify(body)
    const answer = await this.lab.service.fetch(`${this.path}/${action}`, { method: 'POST', body: text })
    const said = await answer.text()
    return { status: answer.status, body: said === '' ? {} : JSON.parse(said) }
  }

  start(): Promise<unknown> {
    return this.lab.service.call('POST', `${this.path}/start`)
  }

  stop(): Promise<unknown> {
    return this.lab.service.call('POST', `${this.path}/stop`)
  }

  update(changes: Record<string, unknown>): Promise<IouNode> {
    return this.lab.service.call('PUT', this.path, changes)
  }

  remove(): Promise<unknown> {
    return this.lab.service.call('DELETE', this.path)
  }

  /** The console of one that runs, at its prompt. */
  async console(): Promise<IouConsole> {
    const console = await IouConsole.connect((await this.view()).console ?? 0)
    await console.expect('>')
    return console
  }

  /** Has it store a configuration with that name; resolves when it has. */
  async store(hostname: string): Promise<void> {
    const console = await this.console()
    await console.configure(`hostname ${hostname}`)
    await console.run('write memory')
    console.close()
  }

  /** The files of its socket and of its bridge's. */
  async sockets(): Promise<string[]> {
    const { application_id } = await this.view()
    return [application_id, application_id + 512].flatMap((id) => [
      join(netioDirectory, `${id}`),
      join(netioDirectory, `${id}.lck`),
    ])
  }
}
