import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createNodeAgent } from '../../../runtime/node/agent.ts'
import { loadConfig } from '../../../runtime/node/config/load.ts'
import type { MachineBounds } from '../../../runtime/node/kinds/machine-emulator/bounds.ts'
import type { HostAgent } from '../../../src/host-agent.ts'
import type { Happening } from '../../../src/model/event.ts'
import type { MachineEmulatorCreate } from '../../../src/model/machine-emulator.ts'
import type { NodeRef } from '../../../src/model/node.ts'
import { portRanges } from '../../support/service.ts'
import { smallest, writeImage } from './machine-lab.ts'

export type MachineRef = NodeRef<'machine-emulator'>

/** The host agent in this process, with bounds that suit a test, and a project. It ends with the test. */
export async function machineAgent(file: number, machineBounds: Partial<MachineBounds> = {}) {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-'))
  const ranges = Object.entries(portRanges(file)).map(
    ([name, [first, last]]) => `--${name.replaceAll('_', '-')}=${first}-${last}`,
  )
  const config = loadConfig({
    argv: ['--data', data, '--machine-emulator-acceleration', 'tcg', ...ranges],
    env: { XDG_CONFIG_HOME: data },
  })
  const quiet = () => {}
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const service = await createNodeAgent({
    ...{ config, log, machineBounds },
    diagnose: async () => ({ ok: true, checks: [] }),
  })
  onTestFinished(async () => {
    await service.close()
    await rm(data, { recursive: true, force: true })
  })
  const { agent } = service
  const { project } = await agent.projects.create({ name: 'lab' })
  const { project_id } = project
  return {
    agent,
    data,
    project,
    /** Where an image of that name is. */
    imagePath: (name: string) => join(data, 'images/machine-emulator', name),
    async image(name: string, head: Buffer = Buffer.alloc(0)): Promise<string> {
      await writeImage(join(data, 'images/machine-emulator', name), head)
      return name
    },
    async machine(settings: Partial<MachineEmulatorCreate> = {}): Promise<MachineRef> {
      const wanted = { name: 'R1', ...smallest, ...settings }
      const { node } = await agent.nodes.create(project_id, 'machine-emulator', wanted, { existing: 'refuse' })
      return { project_id, kind: 'machine-emulator', node_id: node.node_id }
    },
    happenings: () => happenings(agent, project_id),
  }
}

/** What happens in a project from now on. */
async function happenings(agent: HostAgent, projectId: string) {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const reader = (await agent.events.open({ projectId, signal: over.signal })).getReader()
  return {
    async until(fits: (happening: Happening) => boolean): Promise<Happening> {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) throw new Error('the feed ended')
        if (value.kind === 'event' && fits(value.event.happening)) return value.event.happening
      }
    },
  }
}
