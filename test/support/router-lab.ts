import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IouConsole, iourc, standIn } from './iou.ts'
import { reserve } from './lab.ts'
import { runRoutersAlone } from './routers-alone.ts'
import { TestService } from './service.ts'

runRoutersAlone()

export interface Router {
  readonly node_id: string
  readonly application_id: number
  readonly console: number
  readonly status: string
  readonly node_directory: string
  readonly status_reason: string | null
  readonly command_line: string
}

/** A port of a node, which is named by its path. */
export type End = readonly [node: string, adapter: number, port: number]

export const portPath = ([node, adapter, port]: End): string => `${node}/adapters/${adapter}/ports/${port}`

/** A service with a project, and an image that the stand-in plays. */
export class RouterLab {
  readonly service: TestService
  readonly project: string
  readonly projectId: string

  private constructor(service: TestService, projectId: string) {
    this.service = service
    this.projectId = projectId
    this.project = `/v2/compute/projects/${projectId}`
  }

  /** With the port ranges of that number. It is gone when the test ends. */
  static async start(): Promise<RouterLab> {
    return RouterLab.#on(await TestService.start())
  }

  /** The same for several tests, which close the service when they are over. */
  static async startForAll(settings: Record<string, unknown> = {}): Promise<RouterLab> {
    return RouterLab.#on(await TestService.startForAll({ ...settings }))
  }

  static async #on(service: TestService): Promise<RouterLab> {
    await copyFile(await standIn(), join(service.data, 'images/iou/stand-in.bin'))
    return RouterLab.onNewProject(service)
  }

  /** On a service that has the image. */
  static async onNewProject(service: TestService): Promise<RouterLab> {
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'iou' })
    return new RouterLab(service, project_id)
  }

  /** A new router; its path in v2. */
  router = async (name: string, input: Record<string, unknown> = {}): Promise<string> => {
    const wanted = { name, path: 'stand-in.bin', iourc_content: iourc(), ...input }
    const { node_id } = await this.service.call<Router>('POST', `${this.project}/iou/nodes`, wanted)
    return `${this.project}/iou/nodes/${node_id}`
  }

  view = (router: string): Promise<Router> => this.service.call<Router>('GET', router)

  console = async (router: string): Promise<IouConsole> => IouConsole.connect((await this.view(router)).console)

  /** The console of a router that was just started, at its prompt. */
  booted = async (router: string): Promise<IouConsole> => {
    const console = await this.console(router)
    await console.expect('>')
    return console
  }

  /** Links a port of each node. */
  link = async (a: End, b: End): Promise<void> => {
    const { service, project } = this
    const [left, right] = [await reserve(service, project), await reserve(service, project)]
    for (const [end, lport, rport] of [
      [a, left, right],
      [b, right, left],
    ] as const) {
      const nio = { type: 'nio_udp', lport, rhost: '127.0.0.1', rport }
      await service.call('POST', `${portPath(end)}/nio`, nio)
    }
  }

  /** Starts a capture; its file. */
  capture = async (end: End, input: Record<string, unknown>): Promise<string> => {
    const started = await this.service.call<{ pcap_file_path: string }>('POST', `${portPath(end)}/start_capture`, input)
    return started.pcap_file_path
  }
}
