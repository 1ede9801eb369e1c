import { expect, test, vi } from 'vitest'
import { kindEndpoints } from '../../../src/endpoints/compute/kinds.ts'
import type { LabKind } from '../../../src/model/lab/kind.ts'

// The client of the page is made at its import; nothing here calls it.
vi.stubGlobal('location', new URL('http://127.0.0.1/'))
const { NodeTypeDraft } = await import('../../../runtime/browser/node-types/node-type.ts')
vi.unstubAllGlobals()

async function kind(name: string): Promise<LabKind> {
  const answer = (await kindEndpoints[0]?.handle({} as never, {} as never)) as { readonly body: LabKind[] }
  const found = answer.body.find((known) => known.name === name)
  if (found === undefined) throw new Error(`no kind ${name}`)
  return found
}

const shown = (draft: InstanceType<typeof NodeTypeDraft>, ...names: string[]) =>
  Object.fromEntries(
    draft.fields.filter(({ name }) => names.includes(name)).map((field) => [field.name, draft.valueOf(field)]),
  )

test('another image brings its own suggestions, and what the user entered stays', async () => {
  const draft = new NodeTypeDraft(await kind('machine-emulator'))
  draft.chooseImage('vios-l2.qcow2')
  expect([draft.name.value, draft.symbol.value, draft.image]).toEqual(['IOSvL2', 'switch', 'vios-l2.qcow2'])
  expect(shown(draft, 'ram', 'adapters')).toEqual({ ram: 768, adapters: 16 })
  draft.enter('ram', '1000')
  draft.chooseImage('alpine.iso')
  expect([draft.name.value, draft.symbol.value, draft.image]).toEqual(['Alpine', 'machine', 'alpine.iso'])
  expect(shown(draft, 'ram', 'adapters', 'hda_disk_image', 'cdrom_image', 'boot_priority')).toEqual({
    ...{ ram: '1000', adapters: 1, hda_disk_image: '', cdrom_image: 'alpine.iso', boot_priority: 'd' },
  })
  expect(draft.isUnknown).toBe(false)
  draft.chooseImage('mine.qcow2')
  expect(draft.isUnknown).toBe(true)
  expect(shown(draft, 'hda_disk_image', 'cdrom_image', 'boot_priority')).toEqual({
    ...{ hda_disk_image: 'mine.qcow2', cdrom_image: '', boot_priority: 'c' },
  })
  draft.name.value = 'My own'
  draft.chooseImage('vyos.qcow2')
  expect(draft.name.value).toBe('My own')
})

test('a stored image takes the place of an upload that failed', async () => {
  const draft = new NodeTypeDraft(await kind('dynamips'))
  draft.upload.value = { state: { value: 'failed' }, pause: () => {} } as never
  draft.name.value = 'R'
  expect(draft.isReady.value).toBe(false)
  draft.chooseImage('c3725-x.bin')
  expect(draft.isReady.value).toBe(true)
  expect(shown(draft, 'image', 'platform', 'ram')).toEqual({ image: 'c3725-x.bin', platform: 'c3725', ram: 128 })
})

test('a type that is changed keeps its settings when it gets another image', async () => {
  const template = { template_id: 'x', name: 'R', symbol: 'firewall', ram: 2048, hda_disk_image: 'a.qcow2' } as never
  const draft = new NodeTypeDraft(await kind('machine-emulator'), template)
  expect(draft.image).toBe('a.qcow2')
  draft.chooseImage('vios.qcow2')
  expect([draft.name.value, draft.symbol.value, draft.image]).toEqual(['R', 'firewall', 'vios.qcow2'])
  expect(shown(draft, 'ram')).toEqual({ ram: 2048 })
})
