import { type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import { importLabFile } from '../../importers/formats.ts'
import { labFileText } from '../../labfile/text.ts'
import { LabImport, LabImportInput } from '../../model/lab/import.ts'

export const labImportEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'POST', path: '/v2/imports', owner: 'self', tag: 'v2 projects', role: 'read', scope: 'shared' },
    summary: 'Make a lab file from a lab of containerlab, GNS3 or CML; no project is created',
    description: 'The parts of the lab that the lab file lacks are listed, with line and column.',
    body: LabImportInput,
    replies: { 200: { description: 'The lab file', schema: LabImport } },
    handle({ body }) {
      const { format, file, images, leftOut } = importLabFile({
        text: body.text,
        format: body.format ?? undefined,
        annotations: body.annotations ?? undefined,
      })
      return ok({ format, lab: file.lab, text: labFileText(file), images, left_out: leftOut })
    },
  }),
]
