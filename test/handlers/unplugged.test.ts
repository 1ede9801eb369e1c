import { expect, test } from 'vitest'
import type { LabLink } from '../../src/model/lab/link.ts'
import { body, del, post, put, sameHost, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'
import { requireProgram } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const projects = '/v2/projects'
const rows = (...names: string[]) => ({
  ports_mapping: names.map((name, port_number) => ({ name, port_number, type: 'access', vlan: 1 })),
})

/** A lab whose node `right` loses the port of its link, and gets it back. */
async function lab(node: Record<string, unknown>, port: string, less: object, more: object) {
  const at = `${projects}/unplugged-${crypto.randomUUID().slice(0, 8)}`
  await post(projects, { name: at.slice(projects.length + 1), ...sameHost })
  for (const input of [
    { name: 'PC1', node_type: 'pc' },
    { name: 'right', ...node },
  ]) {
    const answer = await post(`${at}/nodes`, input)
    if (answer.status !== 201) throw new Error(await answer.text())
  }
  const { link_id } = await body<LabLink>(post(`${at}/links`, { nodes: ['PC1:e0', `right:${port}`] }))
  await post(`${at}/nodes/PC1/start`)
  /** The list of links reads their states. */
  const state = async () => {
    const link = (await body<LabLink[]>(send(`${at}/links`))).find((it) => it.link_id === link_id)
    return [link?.verdict, link?.verdict_reason]
  }
  const set = async (properties: object) => {
    const answer = await put(`${at}/nodes/right`, { properties })
    if (answer.status !== 200) throw new Error(await answer.text())
  }
  return { at, state, take: () => set(less), give: () => set(more) }
}

/** A node loses its second port; the link stays, and works again as soon as the port is back. */
async function losesAndGets(setting: Awaited<ReturnType<typeof lab>>, port: string) {
  const { at, state, take, give } = setting
  const before = await state()
  expect(before).not.toContain('detached')
  const feed = await openFeed(`${at}/notifications`)
  for (const back of [() => post(`${at}/undo`), give]) {
    await take()
    for (;;) {
      const { action, event } = await feed.next()
      if (action !== 'log.warning') continue
      expect(event.message).toBe(
        `right: the cable of ${port} was unplugged, as the port is gone; it is plugged in again when the port is back`,
      )
      break
    }
    const reason = `The cable of ${port} was unplugged, as right no longer has this port: give it back, or remove the link`
    await expect.poll(state).toEqual(['detached', reason])
    await back()
    await expect.poll(state).toEqual(before)
  }
  feed.close()
  await del(at)
}

test('a switch that gets back a port by an undo, or by hand, has its link again', async () => {
  const [all, one] = [rows('Ethernet0', 'Ethernet1', 'Ethernet2'), rows('Ethernet0', 'Ethernet1')]
  const setting = await lab({ node_type: 'switch', properties: all }, 'e2', one, all)
  await losesAndGets(setting, 'Ethernet2')
})

testWith(requireProgram('qemu-system-x86_64'))('so has a machine that gets back an adapter', async () => {
  const machine = { node_type: 'machine-emulator', properties: { ram: 16, adapters: 2, platform: 'x86_64' } }
  await losesAndGets(await lab(machine, 'e1', { adapters: 1 }, { adapters: 2 }), 'Ethernet1')
})
