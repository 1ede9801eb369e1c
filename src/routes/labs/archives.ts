import { Type } from '@sinclair/typebox'
import { archiveName, exportLab, importLab } from '../../controller/archive.ts'
import { badRequest } from '../../errors/api-error.ts'
import { created, type Endpoint, endpoint } from '../../http/endpoint.ts'
import { LabProject } from '../../model/lab/project.ts'
import { Name, oneOf, Uuid } from '../../schema/fields.ts'
import { base, labsOf, projectParam } from './lab-request.ts'

const tag = 'v2 projects'
const owner = 'self'
const yesOrNo = (description: string) => Type.Optional(oneOf(['yes', 'no'], { default: 'no', description }))
const noArchives = { 501: 'This service makes and reads no archives' }
const media = 'application/gns3project'

/** Labs as archives. */
export const labArchiveEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/export`, owner, tag, params: Type.Object(projectParam) },
    summary: 'Read a project whose nodes are stopped as an archive, a zip file of release 2.2 (.gns3project)',
    query: Type.Object({
      include_images: yesOrNo('Whether the archive has the images; else it has their digests alone'),
      include_snapshots: yesOrNo('Taken, and without effect: snapshots stay with the project'),
      reset_mac_addresses: yesOrNo('Whether MAC addresses are left out, so that a copy gets its own'),
      compression: Type.Optional(
        oneOf(['none', 'zip'], { default: 'zip', description: 'Whether files are compressed' }),
      ),
      compression_level: Type.Optional(
        Type.String({ pattern: '^[0-9]$', expects: 'a digit', default: '1', description: 'From 0 (none) to 9' }),
      ),
    }),
    replies: { 200: { description: 'The archive', media } },
    errors: { 404: 'There is no such project', 409: 'A node runs', ...noArchives },
    async handle({ params, query }, context) {
      const { labs, ask } = labsOf(context)
      const lab = await labs.find(params.project_id)
      const options = {
        withImages: query.include_images === 'yes',
        resetsAddresses: query.reset_mac_addresses === 'yes',
        level: query.compression === 'none' ? 0 : Number(query.compression_level ?? 1),
      }
      return new Response(await exportLab(labs, lab, options, ask), {
        headers: {
          'Content-Type': media,
          'Content-Disposition': `attachment; filename="${archiveName(lab.project())}"`,
          'X-Content-Type-Options': 'nosniff',
        },
      })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/import`, owner, tag, params: Type.Object({ project_id: Uuid }) },
    scope: 'own',
    summary: 'Make a closed project of this id of an archive (.gns3project); a failure leaves nothing',
    description:
      'A name that is taken becomes the next free one. A node that cannot be made here is kept as a placeholder.',
    query: Type.Object({ name: Type.Optional({ ...Name, description: 'Default: the name in the archive' }) }),
    bodyKind: 'raw',
    replies: { 201: { description: 'The project, closed', schema: LabProject } },
    errors: {
      400: 'The body is no archive, or one that is damaged, encrypted or has names that leave it',
      408: 'The body stopped coming',
      409: 'There is a project of this id, or the archive is of a newer version',
      413: 'The archive would become too large',
      ...noArchives,
      507: 'The disk is nearly full',
    },
    async handle({ params, query, request }, context) {
      const { labs, ask } = labsOf(context)
      if (request.body === null) throw badRequest('The body is empty: send the archive')
      const { project_id } = params
      const check = (name: string) => context.projects.requireName(project_id, name)
      return created(await importLab(labs, { project_id, name: query.name, check }, request.body, ask))
    },
  }),
]
