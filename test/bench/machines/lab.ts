import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { type Service, startService } from '../service.ts'

const run = promisify(execFile)

export const baseName = 'base.qcow2'
/** Of the content of the base image, MB. */
const baseMb = 8

/** As the API shows a machine, as far as it is needed here. */
export interface Machine {
  readonly node_id: string
  readonly node_directory: string
  readonly command_line: string
  readonly console: number
}

/** A service with one project for machines. */
export class MachineLab implements AsyncDisposable {
  readonly service: Service
  readonly #project: string

  private constructor(service: Service, project: string) {
    this.service = service
    this.#project = project
  }

  static async open(acceleration: 'tcg' | 'kvm', ...flags: readonly string[]): Promise<MachineLab> {
    const service = await startService('--machine-emulator-acceleration', acceleration, ...flags)
    const images = join(service.data, 'images/machine-emulator')
    await mkdir(images, { recursive: true })
    const raw = join(service.data, 'base.raw')
    await writeFile(raw, Buffer.alloc(baseMb << 20, 'patchbay'))
    await run('qemu-img', ['convert', '-O', 'qcow2', raw, join(images, baseName)])
    const { project_id } = (await service.call('POST', '/v2/compute/projects', { name: 'bench' })) as {
      project_id: string
    }
    return new MachineLab(service, `/v2/compute/projects/${project_id}`)
  }

  /** Puts a file among the images. */
  image(name: string, content: Buffer): Promise<void> {
    return writeFile(join(this.service.data, 'images/machine-emulator', name), content)
  }

  linkedImage(name: string, file: string): Promise<void> {
    return symlink(file, join(this.service.data, 'images/machine-emulator', name))
  }

  /** Connects the first adapters of two machines. */
  async link(nodes: readonly string[]): Promise<void> {
    const reserve = () => this.service.call('POST', `${this.#project}/ports/udp`) as Promise<{ udp_port: number }>
    const ports = (await Promise.all(nodes.map(reserve))).map(({ udp_port }) => udp_port)
    for (const [index, node] of nodes.entries()) {
      const nio = { type: 'nio_udp', lport: ports[index], rport: ports[1 - index], rhost: '127.0.0.1' }
      await this.post(`${node}/adapters/0/ports/0/nio`, nio)
    }
  }

  /** The path of a new machine. */
  async create(settings: object): Promise<string> {
    const nodes = `${this.#project}/machine-emulator/nodes`
    const { node_id } = (await this.service.call('POST', nodes, {
      ...{ name: 'M', platform: 'x86_64', ram: 32 },
      ...settings,
    })) as Machine
    return `${nodes}/${node_id}`
  }

  get(node: string): Promise<Machine> {
    return this.service.call('GET', node) as Promise<Machine>
  }

  /** Milliseconds until the answer. */
  async post(path: string, body?: unknown): Promise<number> {
    const began = performance.now()
    await this.service.call('POST', path, body)
    return performance.now() - began
  }

  delete(node: string): Promise<unknown> {
    return this.service.call('DELETE', node)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.close()
  }
}
