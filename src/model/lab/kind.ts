import { type Static, Type } from '@sinclair/typebox'
import { nullable, objectSchema } from '../schema/fields.ts'

/** A kind of node, for a form of its settings. */
export type LabKind = Static<typeof LabKind>
export const LabKind = objectSchema('LabKind', 'A kind of node, and the form of its settings', {
  name: Type.String({ description: 'Its value in `node_type`' }),
  noun: Type.String({ description: 'The noun for a node of the kind, for use in a sentence' }),
  title: Type.String({ description: 'What people call the kind, such as `QEMU machine`' }),
  symbol: Type.String({ description: 'The symbol of its nodes, where nothing else is said' }),
  first_settings: Type.Array(Type.String(), {
    description: 'The settings to ask for first when a template of the kind is made',
  }),
  image_setting: nullable(
    Type.String({ description: 'The setting that names the image from which its nodes start; null for none' }),
  ),
  is_always_on: Type.Boolean({ description: 'Whether its nodes run as soon as they are created' }),
  can_be_suspended: Type.Boolean(),
  live_settings: Type.Array(Type.String(), {
    description:
      'The settings whose change takes effect while a node runs; the others at its next start. All, if `is_always_on`',
  }),
  has_images: Type.Boolean({ description: 'Whether its nodes start from images' }),
  consoles: Type.Array(Type.Union([Type.Literal('text'), Type.Literal('screen')]), {
    description: 'The possible forms of its console',
  }),
  has_terminal_size: Type.Boolean({ description: 'Whether its consoles are terminals that `console/size` resizes' }),
  configs: Type.Array(Type.String(), { description: 'Names of its configurations, the default first' }),
  console_types: Type.Array(Type.String(), { description: 'Possible values of `console_type`' }),
  form_parts: Type.Array(
    Type.Object(
      {
        title: Type.String(),
        settings: Type.Array(Type.String()),
        rows: Type.Optional(
          Type.Object(
            {
              noun: Type.String({ description: 'What a row is called' }),
              titles: Type.Array(Type.String(), { description: 'What the settings of a row are called in it' }),
              settings: Type.Array(Type.Array(Type.String())),
            },
            {
              additionalProperties: false,
              description: 'Its settings that are shown in rows, one for each that is used',
            },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    { description: 'The parts of a form of the settings, in order; empty: one part' },
  ),
  settings: Type.Record(Type.String(), Type.Unknown(), {
    description: 'JSON Schema of `properties` in a change of a node, without configurations, which have their own path',
  }),
})
