import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { DynamipsTimeouts } from '../../../../runtime/node/drivers/dynamips/timeouts.ts'
import { createNodeAgent, type NodeAgentService } from '../../../../runtime/node/service/agent.ts'
import { loadConfig } from '../../../../runtime/node/service/config/load.ts'
import type { LocalHostAgent } from '../../../../src/host-agent.ts'
import type { DynamipsCreate, DynamipsNode } from '../../../../src/model/kinds/dynamips.ts'
import type { NodeRef } from '../../../../src/model/kinds/node.ts'
import { dynamipsIn, niceDynamips, shortBounds } from '../../../support/dynamips.ts'
import { portArguments } from '../../../support/ports.ts'

export type RouterRef = NodeRef<'dynamips'>

export interface LabOptions {
  /** Arguments of its port ranges; else they are some that no other test has. */
  readonly ports?: readonly string[]
  readonly bounds?: Partial<DynamipsTimeouts>
  /** The program in place of dynamips. */
  readonly program?: string
}

/** A host agent of its own in this process, with a project for routers. */
export class RouterLab {
  readonly agent: LocalHostAgent
  readonly data: string
  readonly projectId: string
  readonly #service: NodeAgentService

  private constructor(service: NodeAgentService, data: string, projectId: string) {
    this.agent = service.agent
    this.data = data
    this.projectId = projectId
    this.#service = service
  }

  /** It is gone when the test ends. */
  static async open(options: LabOptions = {}): Promise<RouterLab> {
    const lab = await RouterLab.openForAll(options)
    onTestFinished(() => lab.remove())
    return lab
  }

  static async openForAll({ ports, bounds, program }: LabOptions = {}): Promise<RouterLab> {
    const data = await mkdtemp(join(tmpdir(), 'patchbay-'))
    const config = loadConfig({
      argv: [
        '--data',
        data,
        '--dynamips-path',
        program ?? (await niceDynamips(data)) ?? 'dynamips',
        ...(ports ?? portArguments()),
      ],
      env: { XDG_CONFIG_HOME: data },
    })
    const quiet = () => {}
    const service = await createNodeAgent({
      config,
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      diagnose: async () => ({ ok: true, checks: [] }),
      timeouts: { dynamips: { ...shortBounds, ...bounds } },
    })
    const { project } = await service.agent.projects.create({ name: 'lab' })
    return new RouterLab(service, data, project.project_id)
  }

  /** A router with a program as its image. */
  async router(content: Uint8Array, input: Partial<DynamipsCreate> = {}): Promise<RouterRef> {
    // Dynamips could not be told this name.
    const image = 'an "idle" one\'s #1.bin'
    const directory = join(this.data, 'images/dynamips')
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, image), content)
    const console_type = 'none' as const
    const wanted = { name: 'R1', platform: 'c7200' as const, ram: 64, image, console_type, ...input }
    const { node } = await this.agent.nodes.create(this.projectId, 'dynamips', wanted, { existing: 'refuse' })
    return { project_id: this.projectId, kind: 'dynamips', node_id: node.node_id }
  }

  get(ref: RouterRef): Promise<DynamipsNode> {
    return this.agent.nodes.get(ref)
  }

  /** The pids of the dynamips of all its routers. */
  get pids(): number[] {
    return dynamipsIn(this.data)
  }

  async ports(): Promise<readonly number[]> {
    return (await this.agent.host.ports()).console_ports
  }

  close(): Promise<void> {
    return this.#service.close()
  }

  async remove(): Promise<void> {
    await this.close()
    await rm(this.data, { recursive: true, force: true })
  }
}
