import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { MachineTimeouts } from '../../../../runtime/node/drivers/qemu/timeouts.ts'
import {
  createNodeAgent,
  type NodeAgentOptions,
  type NodeAgentService,
} from '../../../../runtime/node/service/agent.ts'
import { loadConfig } from '../../../../runtime/node/service/config/load.ts'
import type { LocalHostAgent } from '../../../../src/host-agent.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { MachineEmulatorCreate } from '../../../../src/model/kinds/machine-emulator.ts'
import type { NodeRef } from '../../../../src/model/kinds/node.ts'
import type { Project } from '../../../../src/model/project.ts'
import { portArguments } from '../../../support/ports.ts'
import { smallest, writeImage } from './machine-lab.ts'

export type MachineRef = NodeRef<'machine-emulator'>

/** The host agent in this process for the tests of a file, with bounds that suit them; every call makes a project in it. */
export function sharedAgent(timeouts: Partial<MachineTimeouts> = {}, below = ''): () => Promise<AgentLab> {
  let open: { service: NodeAgentService; data: string; top: string } | undefined
  beforeAll(async () => {
    const top = await mkdtemp(join(tmpdir(), 'patchbay-'))
    const data = join(top, below)
    open = {
      top,
      data,
      service: await createNodeAgent({ ...settings(data), timeouts: { 'machine-emulator': timeouts } }),
    }
  })
  afterAll(async () => {
    await open?.service.close()
    if (open !== undefined) await rm(open.top, { recursive: true, force: true })
  })
  return async () => {
    if (open === undefined) throw new Error('the agent is made before the tests')
    const { agent } = open.service
    return new AgentLab(agent, open.data, (await agent.projects.create({ name: 'lab' })).project)
  }
}

function settings(data: string): NodeAgentOptions {
  const config = loadConfig({
    argv: ['--data', data, '--machine-emulator-acceleration', 'tcg', ...portArguments()],
    env: { XDG_CONFIG_HOME: data },
  })
  const quiet = () => {}
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  return { config, log, diagnose: async () => ({ ok: true, checks: [] }) }
}

/** A project of machines. */
export class AgentLab {
  readonly agent: LocalHostAgent
  readonly data: string
  readonly project: Project

  constructor(agent: LocalHostAgent, data: string, project: Project) {
    this.agent = agent
    this.data = data
    this.project = project
  }

  /** Where an image of that name is. */
  imagePath(name: string): string {
    return join(this.data, 'images/machine-emulator', name)
  }

  async image(name: string, head: Buffer = Buffer.alloc(0)): Promise<string> {
    await writeImage(this.imagePath(name), head)
    return name
  }

  async machine(settings: Partial<MachineEmulatorCreate> = {}): Promise<MachineRef> {
    const { project_id } = this.project
    const wanted = { name: 'R1', ...smallest, ...settings }
    const { node } = await this.agent.nodes.create(project_id, 'machine-emulator', wanted, { existing: 'refuse' })
    return { project_id, kind: 'machine-emulator', node_id: node.node_id }
  }

  payloads() {
    return payloads(this.agent, this.project.project_id)
  }
}

/** What happens in a project from now on. */
async function payloads(agent: LocalHostAgent, projectId: string) {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const reader = (await agent.events.open({ projectId, signal: over.signal })).getReader()
  return {
    async until(fits: (payload: EventPayload) => boolean): Promise<EventPayload> {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) throw new Error('the feed ended')
        if (value.kind === 'event' && fits(value.event.payload)) return value.event.payload
      }
    },
  }
}
