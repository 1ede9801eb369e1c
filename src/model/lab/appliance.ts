import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable } from '../schema/fields.ts'
import { LabImportLoss } from './import.ts'
import { LabTemplate } from './template.ts'

const maxText = 1 << 20

export const ApplianceInput = Type.Object(
  {
    text: Type.String({ minLength: 1, maxLength: maxText, description: 'The appliance, a file *.gns3a' }),
    version: maybe(Type.String({ maxLength: 100, description: 'One of its versions. Default: the first one' })),
    name: maybe(Name),
  },
  { $id: 'ApplianceInput', additionalProperties: false, description: 'An appliance of GNS3' },
)

/** A template that was made of an appliance. */
export type ApplianceImport = Static<typeof ApplianceImport>
export const ApplianceImport = Type.Object(
  {
    template: LabTemplate,
    version: nullable(Type.String({ description: 'The version that was used' })),
    versions: Type.Array(Type.String(), { description: 'All versions of the appliance' }),
    images: Type.Array(
      Type.Object({
        setting: Type.String({ description: 'The setting of the template that names it' }),
        filename: Type.String({ description: 'Its name in the appliance' }),
        md5: nullable(Type.String()),
        size: nullable(Type.Number({ description: 'Bytes' })),
        from: nullable(Type.String({ description: 'Where the vendor offers it' })),
        image: Type.String({ description: 'Its name here: upload it by this name when it is missing' }),
        is_missing: Type.Boolean({ description: 'No connected compute has it' }),
      }),
    ),
    left_out: Type.Array(LabImportLoss, {
      description: 'What the template leaves out or has in another form, by its position in the given text',
    }),
  },
  { $id: 'ApplianceImport', description: 'A template created from an appliance, and the images that it needs' },
)
