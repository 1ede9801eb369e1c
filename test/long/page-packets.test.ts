import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { mac } from '../support/frames.ts'
import { LabPage } from '../support/lab-page.ts'
import { samples } from '../support/packet-samples.ts'
import { freePort } from '../support/ports.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

const markup = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
const hostile = [markup, 'plain\u202eevil\u2066x', '\x1b]0;title\x07\x1b[2J', 'a\r\nb\tc\0d', '👨‍👩‍👧'.repeat(20)]

/** An LLDP frame (IEEE 802.1AB) whose system has that name. */
function lldp(name: string): Buffer {
  const field = (type: number, value: Buffer) => {
    const head = Buffer.alloc(2)
    head.writeUInt16BE((type << 9) | value.length)
    return Buffer.concat([head, value])
  }
  const ends = [Buffer.from([7, 97]), Buffer.from([7, 98])]
  const fields = [field(1, ends[0] as Buffer), field(2, ends[1] as Buffer), field(3, Buffer.from([0, 120]))]
  const head = Buffer.from([0x01, 0x80, 0xc2, 0, 0, 0x0e, ...mac(1), 0x88, 0xcc])
  return Buffer.concat([head, ...fields, field(5, Buffer.from(name)), field(0, Buffer.alloc(0))])
}

/** A DNS question (RFC 1035) that tells of 65,535 entries, and has none of them. */
function countlessNames(): Buffer {
  const dns = Buffer.from([0, 1, 0x81, 0x80, ...Array<number>(8).fill(0xff), 0xc0, 0x0c])
  const udp = Buffer.concat([Buffer.from([0, 53, 0, 53, 0, 8 + dns.length, 0, 0]), dns])
  const ip = Buffer.from([0x45, 0, 0, 20 + udp.length, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
  return Buffer.concat([Buffer.from([...mac(2), ...mac(1), 8, 0]), ip, udp])
}

testWith(browser)(
  'frames that are made to confuse are text in the table of packets, and change nothing',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/projects', { name: 'Hostile' })
    const nodes: { node_id: string; adapter_number: number; port_number: number }[] = []
    for (const name of ['PC1', 'PC2']) {
      const body = { name, node_type: 'pc', compute_id: 'local', x: nodes.length * 200 }
      const { node_id } = await service.call<{ node_id: string }>('POST', `/v2/projects/${project_id}/nodes`, body)
      nodes.push({ node_id, adapter_number: 0, port_number: 0 })
    }
    await service.call('POST', `/v2/projects/${project_id}/links`, { nodes })
    await service.call('POST', `/v2/projects/${project_id}/nodes/start`)
    // What a guest sends arrives so: the port of the PC that captures gets another peer, which is this test.
    const socket = createSocket('udp4').bind(freePort(), '127.0.0.1')
    onTestFinished(() => void socket.close())
    await once(socket, 'listening')
    const pcs = `/v2/compute/projects/${project_id}/pc/nodes`
    const nios: { lport: number }[] = []
    for (const [index, { node_id }] of nodes.entries()) {
      const nio = `${pcs}/${node_id}/adapters/0/ports/0/nio`
      const lport = freePort()
      // The link of two nodes of one compute is one thing.
      if (index === 0) await service.call('DELETE', nio)
      nios.push(
        await service.call('POST', nio, { type: 'nio_udp', lport, rport: socket.address().port, rhost: '127.0.0.1' }),
      )
    }
    const frames = [
      ...hostile.map(lldp),
      countlessNames(),
      ...samples
        .filter(({ linkType }) => linkType === 1)
        .flatMap(({ frame }) => [frame, frame.subarray(0, frame.length / 2), frame.subarray(0, 15)]),
    ]

    const lab = await LabPage.open(service.url, '/#/labs/Hostile')
    const { page } = lab
    page.on('dialog', (dialog) => {
      lab.faults.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
    await lab.link('PC1', 'PC2').focus()
    await page.keyboard.press('p')
    const packets = page.getByRole('region', { name: 'Packets of PC1 – PC2' })
    await packets.getByText('No frames yet').waitFor()
    for (const frame of frames)
      for (const { lport } of nios) await new Promise((sent) => socket.send(frame, lport, '127.0.0.1', sent))
    await packets.getByText(`${frames.length} frames`).waitFor()

    const table = packets.getByRole('listbox')
    await table.evaluate((it) => {
      it.scrollTop = 0
    })
    await packets.getByRole('option').filter({ hasText: markup }).first().click()
    await packets.locator('.layers').getByText('Link Layer Discovery Protocol').first().waitFor()
    for (const summary of await packets.locator('.layers summary').all()) await summary.click()
    await packets.locator('.layers').getByText(`System Name: ${markup}`).waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const faults = await accessibilityFaults(page, { isRecoloured: colorScheme === 'dark' })
      lab.faults.push(...faults.map((fault) => `packets, ${colorScheme}: ${fault}`))
    }
    // Through the whole table by the keyboard: each frame has its row and its tree, on one line each.
    await table.focus()
    await page.keyboard.press('PageUp')
    for (let frame = 1; frame < frames.length; frame++) await page.keyboard.press('ArrowDown')
    await packets.locator(`.packet-row[aria-posinset="${frames.length}"][aria-selected=true]`).waitFor()
    const unseen = /[\p{Cc}\p{Cf}]/u.test((await packets.innerText()).replace(/[\n\t]/g, ''))
    // In one go: rows that are found first, and measured then, may have gone meanwhile.
    const heights = await packets.evaluate((it) => {
      const rows = [...it.querySelectorAll('.packet-rows .packet-row')]
      return [...new Set(rows.map((row) => row.getBoundingClientRect().height))]
    })
    expect([unseen, heights]).toEqual([false, [24]])
    expect(await packets.locator('img, script').count()).toBe(0)
    expect(await page.title()).toBe('Hostile – Patchbay')
    expect(lab.faults).toEqual([])
  },
  240_000,
)
