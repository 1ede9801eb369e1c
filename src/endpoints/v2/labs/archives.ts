import { Type } from '@sinclair/typebox'
import { archiveName, exportLab } from '../../../labs/archives/archive.ts'
import { importLab } from '../../../labs/archives/import-lab.ts'
import { badRequest } from '../../../lib/errors/api-error.ts'
import { attachment } from '../../../lib/http/content-disposition.ts'
import { ownsLabs } from '../../../model/access/identity.ts'
import { LabImported } from '../../../model/lab/project.ts'
import { Name, oneOf, Uuid, yesOrNo } from '../../../model/schema/fields.ts'
import { created, type Endpoint, endpoint } from '../../../server/http/endpoint.ts'
import { base, labsOf, notTrusted, projectParam, trustQuery } from './lab-request.ts'

const tag = 'v2 projects'
const owner = 'self'
const noArchives = { 501: 'This service does not support archives' }
const media = 'application/gns3project'

export const labArchiveEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/export`, owner, tag, params: Type.Object(projectParam) },
    summary: 'Export a project as an archive: a zip file of GNS3 2.2 (.gns3project); its nodes must be stopped',
    query: Type.Object({
      include_images: yesOrNo('Whether the archive has the images, and not only their digests'),
      include_snapshots: yesOrNo('Whether the archive has the snapshots, without the memory of running machines'),
      reset_mac_addresses: yesOrNo('Whether MAC addresses are left out, so that an import generates new ones'),
      compression: Type.Optional(
        oneOf(['none', 'zip'], { default: 'zip', description: 'Whether files are compressed' }),
      ),
      compression_level: Type.Optional(
        Type.String({ pattern: '^[0-9]$', expects: 'a digit', default: '1', description: 'From 0 (none) to 9' }),
      ),
    }),
    replies: { 200: { description: 'The archive', media } },
    errors: { 404: 'There is no such project', 409: 'A node is running', ...noArchives },
    async handle({ params, query }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.find(params.project_id)
      const options = {
        withImages: query.include_images === 'yes',
        withSnapshots: query.include_snapshots === 'yes',
        resetsAddresses: query.reset_mac_addresses === 'yes',
        withChecks: ownsLabs(context.identity),
        level: query.compression === 'none' ? 0 : Number(query.compression_level ?? 1),
      }
      return new Response(await exportLab(labs, lab, options, agentFor), {
        headers: {
          'Content-Type': media,
          'Content-Disposition': attachment(archiveName(lab.project())),
          'X-Content-Type-Options': 'nosniff',
        },
      })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/import`, owner, tag, params: Type.Object({ project_id: Uuid }) },
    scope: 'own',
    summary: 'Import an archive (.gns3project) as a closed project with this id; a failed import leaves nothing behind',
    description:
      'If the name is taken, the project gets the next free one. A node that the compute cannot create becomes a placeholder. The project is neither opened ' +
      'nor started with the service, whatever the archive says.',
    query: Type.Object({
      name: Type.Optional({ ...Name, description: 'Default: the name in the archive' }),
      ...trustQuery,
    }),
    bodyKind: 'raw',
    replies: { 201: { description: 'The project, closed', schema: LabImported } },
    errors: {
      400: 'The body is not an archive, or is damaged, encrypted or has unsafe names',
      403: notTrusted,
      408: 'The body sent no data for too long',
      409: 'The id is taken, or the archive is of another version',
      413: 'The content of the archive is too large',
      ...noArchives,
      503: 'A compute cannot be asked whether it has a project of this id: only for credentials for some projects',
      507: 'The disk is nearly full',
    },
    async handle({ params, query, request }, context) {
      const { labs, agentFor } = labsOf(context)
      if (request.body === null) throw badRequest('The body is empty: send the archive')
      const { project_id } = params
      const check = (name: string) => context.projects.requireName(project_id, name)
      // All projects of a compute share its images: a client that may not see all projects adds none.
      const storesImages = context.projects.isWhole
      // The name of the lab would show a client the project of another one that has the id.
      const asksAll = !context.projects.namesId(project_id)
      const { scope } = context.projects
      const { conventions } = context
      const isTrusted = query.trust === 'true'
      const input = { project_id, name: query.name, storesImages, check, asksAll, scope, conventions, isTrusted }
      const { project, leftOut, cannotRun } = await importLab(labs, input, request.body, agentFor)
      return created({ ...project, left_out: [...leftOut], cannot_run: [...cannotRun] })
    },
  }),
]
