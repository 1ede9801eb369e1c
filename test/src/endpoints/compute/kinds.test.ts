import { expect, test } from 'vitest'
import { kindEndpoints } from '../../../../src/endpoints/compute/kinds.ts'
import { kinds } from '../../../../src/model/kinds/index.ts'
import type { KindDescriptor } from '../../../../src/model/kinds/kind.ts'
import type { LabKind } from '../../../../src/model/lab/kind.ts'

const list: readonly KindDescriptor[] = kinds
const shown = async (): Promise<readonly LabKind[]> => {
  const [endpoint] = kindEndpoints
  const answer = (await endpoint?.handle({} as never, {} as never)) as { readonly body: LabKind[] }
  return answer.body
}

test.each(list.filter(({ formParts }) => formParts !== undefined))(
  'a form of $name has each of its settings in one part',
  async ({ name, formParts = {} }) => {
    const kind = (await shown()).find((known) => known.name === name)
    const settings = Object.keys((kind?.settings.properties ?? {}) as object).sort()
    expect(Object.values(formParts).flat().sort()).toEqual(settings)
  },
)

test.each(list.filter(({ firstSettings }) => firstSettings !== undefined))(
  'a new node type of $name asks for settings that the kind has',
  async ({ name }) => {
    const kind = (await shown()).find((known) => known.name === name)
    const settings = Object.keys((kind?.settings.properties ?? {}) as object)
    expect(settings).toEqual(expect.arrayContaining(kind?.first_settings ?? []))
    if (kind?.image_setting != null) expect(kind.first_settings).toContain(kind.image_setting)
  },
)
