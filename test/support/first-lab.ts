import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import type { LabPage } from './lab-page.ts'

/** Everything that a person does who opens the page for the first time: from the button New lab to the exported archive. */
export async function firstLab(lab: LabPage): Promise<void> {
  const { page } = lab
  await lab.newLab('First lab')
  await lab.place('PC', { x: 200, y: 320 }, 'PC1')
  await lab.place('Switch', { x: 380, y: 180 }, 'Switch1')
  await lab.place('PC', { x: 560, y: 320 }, 'PC2')
  await lab.draw('PC1', 'Switch1')
  await lab.draw('PC2', 'Switch1')
  await page.getByRole('button', { name: 'Start all nodes' }).click()
  await lab.node('PC1', ', pc, running').waitFor()
  await lab.node('PC2', ', pc, running').waitFor()
  // Nothing is selected: the counts of the lab, as on its card.
  await page.keyboard.press('Escape')
  await page.getByText('2, 2 running').waitFor()

  const two = await lab.openConsole('PC2')
  await lab.shows('PC2>')
  await two.pressSequentially('ip 10.0.0.2/24\r')
  await lab.shows('10.0.0.2 255.255.255.0')
  const one = await lab.openConsole('PC1')
  await lab.shows('PC1>')
  await one.pressSequentially('ip 10.0.0.1/24\r')
  await lab.shows('10.0.0.1 255.255.255.0')
  await one.pressSequentially('ping 10.0.0.2 -c 1\r')
  await lab.shows(/icmp_seq=1 ttl=64 time=[\d.]+ ms/)

  await lab.clickLink('PC1', 'Switch1')
  await page.getByText('Frames pass in both directions.').waitFor()
  await lab.pull('Delay', '100 ms')
  await page.locator('.badge', { hasText: '100 ms' }).waitFor()
  // Request and answer are late by 100 ms each.
  await one.pressSequentially('ping 10.0.0.2 -c 1\r')
  await lab.shows(/icmp_seq=1 ttl=64 time=[2-9]\d\d\.\d+ ms/)

  await page.getByRole('button', { name: 'Packets' }).click()
  const packets = page.getByRole('region', { name: 'Packets of PC1 – Switch1' })
  await packets.getByText('No frames yet').waitFor()
  await page.getByRole('button', { name: 'PC1', exact: true }).first().click()
  await one.pressSequentially('ping 10.0.0.2 -c 1\r')
  await page.getByRole('button', { name: 'PC1 – Switch1', exact: true }).click()
  await packets.getByLabel('Filter').fill('icmp reply')
  await packets.getByRole('option').first().click()
  await packets.getByText('Internet Protocol Version 4', { exact: false }).first().waitFor()

  await lab.node('PC1').focus()
  await page.keyboard.press('Control+z')
  await page.locator('.badge').waitFor({ state: 'detached' })
  // The ports of the selected node have counters.
  await page.getByText(/^in \d+ frames?, [\d.]+ (bytes|KB) · out \d+ frame/).waitFor()

  await page.getByRole('link', { name: 'All labs' }).click()
  await page.getByRole('button', { name: 'Export First lab' }).click()
  const [archive] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Stop and export' }).click(),
  ])
  expect(archive.suggestedFilename()).toBe('First lab.gns3project')
  // A zip archive, whose members have their names as they are.
  const bytes = await readFile(await archive.path())
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect([bytes.subarray(0, 2).toString(), bytes.includes('project.gns3')]).toEqual(['PK', true])
}
