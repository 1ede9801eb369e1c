import { LabImport, LabImportInput } from '../../../model/lab/import.ts'
import { type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'

export const labImportEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'POST', path: '/v2/imports', owner: 'self', tag: 'v2 projects', role: 'read', scope: 'shared' },
    summary: 'Create a lab file from a lab of containerlab, GNS3 or CML; no project is created',
    description: 'The parts of the lab that the lab file lacks are listed, with line and column.',
    body: LabImportInput,
    replies: { 200: { description: 'The lab file', schema: LabImport } },
    async handle({ body: { text, format, annotations, files } }, { read }) {
      const input = { text, format: format ?? undefined, annotations: annotations ?? undefined, files }
      return ok(await read('labImport', input))
    },
  }),
]
