import { type Static, Type } from '@sinclair/typebox'
import { maybe, objectSchema, oneOf } from '../schema/fields.ts'

/** Formats of labs of other programs that are read, in the order in which they are tried. */
const labFormats = ['gns3', 'containerlab', 'cml'] as const
export type LabFormat = (typeof labFormats)[number]

/** The longest text, in characters. */
const maxText = 1 << 20

export type LabImportInput = Static<typeof LabImportInput>
export const LabImportInput = Type.Object(
  {
    text: Type.String({ minLength: 1, maxLength: maxText, description: 'The file, YAML or JSON' }),
    format: maybe(oneOf(labFormats, { description: 'Its format. Default: detected' })),
    annotations: maybe(
      Type.String({
        maxLength: maxText,
        description: 'For containerlab: the file *.annotations.json, with positions',
      }),
    ),
    files: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
        maxItems: 10_000,
        description: 'Names of the text files beside it. A configuration that is not among them is left out',
      }),
    ),
  },
  { $id: 'LabImportInput', additionalProperties: false, description: 'A lab of another program' },
)

/** A part of a file of another program that is not taken over as it is. */
export const LabImportLoss = objectSchema('LabImportLoss', 'A part that is not taken over as it is', {
  path: Type.String({ description: 'Such as topology.nodes.r1.binds' }),
  line: Type.Integer(),
  column: Type.Integer(),
  effect: oneOf(['changed', 'left-out'], { description: 'It has another form, or is not there' }),
  message: Type.String(),
})

/** A lab of another program as a lab file. */
export type LabImport = Static<typeof LabImport>
export const LabImport = Type.Object(
  {
    format: oneOf(labFormats, { description: 'The format that was read' }),
    lab: Type.String({ description: 'Name of the lab' }),
    text: Type.String({ description: 'The lab file' }),
    images: Type.Array(
      Type.Object({
        kind: Type.String({ description: 'Kind of the nodes' }),
        image: Type.String({ description: 'Its name in the lab file' }),
        md5: Type.Optional(Type.String({ description: 'The digest that it must have' })),
        nodes: Type.Array(Type.String()),
      }),
      { description: 'Images that the nodes need; none is in the file' },
    ),
    nodes: Type.Array(
      Type.Object({
        name: Type.String({ description: 'Its name in the lab file' }),
        kind: Type.String({ description: 'Its kind in the lab file' }),
        from: Type.String({ description: 'Its kind in the given text' }),
        line: Type.Integer(),
        column: Type.Integer(),
        cannot_run: Type.Optional(
          Type.String({
            description: 'Why it cannot run here: it is a placeholder with its name, place, ports and links',
          }),
        ),
        hint: Type.Optional(Type.String({ description: 'Where the files come from that it needs' })),
      }),
      { description: 'The nodes of the lab file, without segments, by their positions in the given text' },
    ),
    left_out: Type.Array(LabImportLoss, {
      description: 'What the lab file leaves out or has in another form, by its position in the given text',
    }),
  },
  { $id: 'LabImport', description: 'A lab file created from a lab of another program' },
)
