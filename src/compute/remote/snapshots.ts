import { Type } from '@sinclair/typebox'
import type { SnapshotAgent } from '../../host-agent.ts'
import { ProjectSnapshot } from '../../model/project-snapshot.ts'
import type { Connection } from './connection.ts'
import { path } from './paths.ts'

const list = Type.Array(ProjectSnapshot)
const listPath = (projectId: string): string => path`/v2/compute/projects/${projectId}/snapshots`
const snapshotPath = (projectId: string, snapshotId: string): string => listPath(projectId) + path`/${snapshotId}`

export const remoteSnapshots = (connection: Connection): SnapshotAgent => ({
  list: (projectId) => connection.json(list, { method: 'GET', path: listPath(projectId) }),
  take: (projectId, snapshotId) =>
    connection.json(ProjectSnapshot, { method: 'POST', path: snapshotPath(projectId, snapshotId) }),
  async remove(projectId, snapshotId) {
    await connection.done({ method: 'DELETE', path: snapshotPath(projectId, snapshotId) })
  },
  async restore(projectId, snapshotId, step) {
    await connection.done({ method: 'POST', path: `${snapshotPath(projectId, snapshotId)}/restore`, input: { step } })
  },
})
