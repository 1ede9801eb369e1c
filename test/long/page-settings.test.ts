import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

/** What starts anywhere, and at once. */
const tiny = { ram: 16, adapters: 1, adapter_type: 'e1000', options: '-accel tcg', platform: 'x86_64' }

testWith(requireChromium(), requireProgram('qemu-system-x86_64'))(
  'settings of a running machine wait for its restart, and a missing image is uploaded from the form',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const at = '/v2/projects/settings'
    const body = 'lab: settings\nnodes:\n  C9: { kind: machine, platform: x86_64, image: gone.qcow2 }\n'
    const headers = { 'content-type': 'application/yaml' }
    await service.fetch(`${at}/topology?partial=true`, { method: 'PUT', headers, body })
    await expect.poll(() => service.call('GET', `${at}/nodes`)).toHaveLength(1)
    await service.call('POST', `${at}/nodes`, {
      name: 'M1',
      node_type: 'machine-emulator',
      properties: tiny,
      x: 200,
      y: 0,
    })
    await service.call('POST', `${at}/nodes/M1/start`)
    const lab = await LabPage.open(service.url, '/#/labs/settings')
    const { page } = lab
    await lab.node('M1', '.*running').click()
    const panel = page.getByRole('complementary', { name: 'Node M1' })
    await panel.getByLabel('RAM').fill('24')
    await panel.getByRole('button', { name: 'Save', exact: true }).click()
    const toasts = page.locator('.toast')
    await toasts.getByText('The settings of M1 are saved, and take effect at its next start.').waitFor()
    const waits = panel.getByText('New settings take effect at the next start.')
    await waits.waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await panel.getByRole('button', { name: 'Restart' }).click()
    await waits.waitFor({ state: 'detached' })
    await lab.node('M1', '.*running').waitFor()
    const { command_line } = await service.call<{ command_line: string }>('GET', `${at}/nodes/M1`)
    expect(command_line).toContain('24M')

    const cd = panel.getByLabel('CD-ROM image')
    await cd.fill('tools.iso')
    await panel.getByRole('button', { name: 'Save', exact: true }).click()
    await panel.getByText('CD-ROM image: "tools.iso" does not exist; upload it, then try again').waitFor()
    expect(await cd.getAttribute('aria-invalid')).toBe('true')
    await panel.getByRole('button', { name: 'Upload' }).click()
    const dialog = page.getByRole('dialog')
    const file = { name: 'my tools.iso', mimeType: 'application/octet-stream', buffer: Buffer.alloc(65_536) }
    await dialog.locator('input[type=file]').setInputFiles(file)
    await dialog.getByRole('button', { name: 'Save the settings' }).click()
    await toasts.getByText('The settings of M1 are saved.').waitFor()
    expect(await panel.getByText('does not exist').count()).toBe(0)
    expect(await service.call('GET', `${at}/nodes/M1`)).toMatchObject({ properties: { cdrom_image: 'tools.iso' } })

    await lab.node('C9', '.*').click()
    const other = page.getByRole('complementary', { name: 'Node C9' })
    await other.getByRole('button', { name: 'Replace by …' }).click()
    await dialog.getByLabel('Replace by').selectOption('PC')
    await dialog.getByRole('button', { name: 'Replace', exact: true }).click()
    await lab.node('C9', ', pc').waitFor()
    expect(lab.faults).toEqual([])
  },
)
