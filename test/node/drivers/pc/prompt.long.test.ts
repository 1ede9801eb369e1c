import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bootScript, vpcsName } from '../../../../runtime/node/drivers/pc/startup-script.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { Terminal } from '../../../support/terminal.ts'
import { testWith } from '../../../support/test-with.ts'

/** Starts pcs of these names; returns what the console of a pc shows up to its prompt. */
async function pcs(engine: 'embedded' | 'vpcs') {
  const service = await TestService.start({ 'pc.engine': engine })
  const project_id = randomUUID()
  await service.call('POST', '/v2/compute/projects', { name: 'prompts', project_id })
  const list = `/v2/compute/projects/${project_id}/pc/nodes`
  const shows = async (node: string, prompt: string): Promise<string> => {
    const { console: port } = await service.call<{ console: number }>('POST', `${node}/start`)
    const terminal = await Terminal.connect(port)
    // A terminal shows bytes.
    const text = await terminal.expect(new RegExp(`\\r${Buffer.from(prompt).toString('latin1')}> `))
    await service.call('POST', `${node}/stop`)
    return text
  }
  const add = async (name: string, startup_script?: string): Promise<string> => {
    const { node_id } = await service.call<{ node_id: string }>('POST', list, { name, startup_script })
    return `${list}/${node_id}`
  }
  return { service, add, shows }
}

describe('the prompt of a pc', () => {
  it('is its name in the embedded engine, after a rename from the next start on', async () => {
    const { service, add, shows } = await pcs('embedded')
    const node = await add('Zürich 1')
    expect(await shows(node, 'Zürich 1')).not.toContain('startup')
    await service.call('PUT', node, { name: 'a-name-that-is-longer-than-thirty-two' })
    await shows(node, 'a-name-that-is-longer-than-thirt')
    const scripted = await add('a-name-that-is-longer-than-thirty-three', 'set pcname %h\nip 10.0.0.1/24\n')
    const text = await shows(scripted, 'a-name-that-is-longer-than-thirt')
    expect(text).toContain('a-name-that-is-longer-than-thirt : 10.0.0.1 255.255.255.0')
    expect(text).not.toContain('Invalid name')
  })

  testWith(requireProgram('vpcs'))(
    'is as much of its name as VPCS takes, unless its script says another one',
    async () => {
      const { service, add, shows } = await pcs('vpcs')
      const node = await add('PC 1')
      await shows(node, 'PC1')
      await service.call('PUT', node, { name: 'Zürich-West-Long' })
      const text = await shows(node, 'Zür[^\\r]*')
      expect(text).not.toMatch(/too long|Incomplete/)
      await service.call('PUT', node, { startup_script: 'set pcname own\nip 10.0.0.3/24\n' })
      expect(await shows(node, 'own')).toContain('10.0.0.3 255.255.255.0')
      await service.call('DELETE', node)
      expect((await readdir(join(service.data, 'run'))).filter((name) => name.endsWith('.vpc'))).toEqual([])
    },
  )

  it('is cut for VPCS between characters, and has no blanks', () => {
    expect(vpcsName('My PC', 12)).toBe('MyPC')
    expect(vpcsName('Züüüüüü', 6)).toBe('Züü')
    expect(vpcsName('路由器', 6)).toBe('路由')
    expect(bootScript('\u202e \u0085', 6, true)).toBe('load startup.vpc\n')
  })
})
