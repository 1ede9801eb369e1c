import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type ImageSays, writeBusyboxImage } from './container-image.ts'
import { attach, reserve } from './lab.ts'
import type { TestService } from './service.ts'
import { Terminal } from './terminal.ts'

/** The prompt of the shell in the containers of tests. */
const prompt = '/ # '

/** Gives a service an image with busybox. */
export const addImage = (service: TestService, name = 'busybox.tar', says: ImageSays = {}): Promise<void> =>
  writeBusyboxImage(join(service.data, 'images/container', name), says)

/** Creates a container; its path. */
export async function createContainer(service: TestService, project: string, settings: object = {}): Promise<string> {
  const node_id = randomUUID()
  const body = { name: `C${node_id.slice(0, 4)}`, image: 'busybox.tar', node_id, ...settings }
  await service.call('POST', `${project}/container/nodes`, body)
  return `${project}/container/nodes/${node_id}`
}

/** Creates a project; its path. */
export async function createProject(service: TestService): Promise<string> {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', {
    name: randomUUID(),
  })
  return `/v2/compute/projects/${project_id}`
}

/** Two containers on one link, 10.0.0.1 and 10.0.0.2. */
export async function createPair(service: TestService, project: string): Promise<readonly [string, string]> {
  const [a, b] = await Promise.all(
    [1, 2].map((number) =>
      createContainer(service, project, { name: `C${number}`, exec: `ip addr add 10.0.0.${number}/24 dev eth0` }),
    ),
  )
  const [one, other] = [await reserve(service, project), await reserve(service, project)]
  await attach(service, a ?? '', one, other)
  await attach(service, b ?? '', other, one)
  return [a ?? '', b ?? '']
}

/** A shell of a running container. */
export class Shell {
  readonly #terminal: Terminal

  private constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  static async open(service: TestService, node: string): Promise<Shell> {
    const { console: port } = await service.call<{ console: number }>('GET', node)
    const terminal = await Terminal.connect(port)
    // A line that is longer than the terminal is wide would be shown in two.
    terminal.type('stty cols 400; echo wi""de\r')
    await terminal.expect('\nwide')
    await terminal.expect(prompt)
    return new Shell(terminal)
  }

  /** What a line shows, without itself and the prompt after it. */
  async run(line: string): Promise<string> {
    const mark = randomUUID().slice(0, 8)
    this.#terminal.type(`${line}; echo ${mark.slice(0, 4)}""${mark.slice(4)}\r`)
    const shown = await this.#terminal.expect(mark)
    await this.#terminal.expect(prompt)
    const after = shown.slice(shown.indexOf(`""${mark.slice(4)}`) + 6, -mark.length)
    return after.replaceAll('\r', '').trim()
  }
}
