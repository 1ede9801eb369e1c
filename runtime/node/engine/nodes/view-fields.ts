import type { Static, TObject } from '@sinclair/typebox'
import type { nodeFields } from '../../../../src/model/schema/node-fields.ts'
import type { KindNode } from './kind.ts'

/** The fields that every kind shows. */
export const fieldsOf = ({ record, projectId, directory, status }: KindNode): Static<TObject<typeof nodeFields>> => ({
  node_id: record.node_id,
  project_id: projectId,
  name: record.name,
  node_directory: directory,
  status,
  console: record.console,
  command_line: record.command_line,
  status_reason: record.status_reason,
})
