import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { conflict } from '../../../src/errors/api-error.ts'
import { Variable } from '../../../src/model/project.ts'
import { nullable } from '../../../src/schema/fields.ts'

import { withDiskErrors } from '../storage/disk.ts'
import {
  makeDirectory,
  readDurable,
  removeTemporaries,
  removeTree,
  removeTreeDurable,
  writeDurable,
} from '../storage/durable-file.ts'
import { NewerRecord, recordVersion } from '../storage/newer-record.ts'
import { markerDirectory } from '../storage/paths.ts'

/** A project on disk: `.patchbay/project.json`. Its presence is also the marker that the directory is ours. */
export type ProjectRecord = Static<typeof ProjectRecord>
export const ProjectRecord = Type.Object({
  version: Type.Integer({ minimum: 1, maximum: recordVersion }),
  project_id: Type.String({ format: 'uuid' }),
  name: nullable(Type.String()),
  temporary: Type.Boolean(),
  variables: nullable(Type.Array(Variable)),
  /** Whether a service that starts opens it. */
  open: Type.Boolean(),
  /** What was begun with it, and is finished by the next service when this one is killed: it is closed, or deleted from disk. */
  ending: Type.Optional(Type.Union([Type.Literal('close'), Type.Literal('remove')])),
  /** UDP ports that were reserved for links, until the NIO that uses one is deleted, or it is given back. */
  udp_ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }))),
  /** Directories of deleted instances that wait for a commit, as `{kind}/{node_id}`. */
  deleted: Type.Array(Type.String({ pattern: '^[a-z-]+/[0-9a-f-]{36}$' })),
})

const fileOf = (directory: string): string => join(directory, markerDirectory, 'project.json')
export const nodeRecords = (directory: string): string => join(directory, markerDirectory, 'nodes')

/** How a node is being deleted: its files at once, or with the next commit. */
export type Deletion = 'now' | 'later'

/** The record of a node; while the node is being deleted, its name says so. */
export function nodeRecordFile(directory: string, kind: string, nodeId: string, deletion?: Deletion): string {
  return join(nodeRecords(directory), `${kind}-${nodeId}${deletion === undefined ? '' : `.deleting-${deletion}`}.json`)
}

/** What the name of the record of a node says; undefined for that of another file. */
export function nodeOfRecord(name: string): { kind: string; nodeId: string; deletion?: Deletion } | undefined {
  const [, kind, nodeId, deletion] = /^([a-z-]+)-([0-9a-f-]{36})(?:\.deleting-(now|later))?\.json$/.exec(name) ?? []
  if (kind === undefined || nodeId === undefined) return undefined
  return { kind, nodeId, ...(deletion !== undefined && { deletion: deletion as Deletion }) }
}

/** Writes the record, and with the first one the marker. */
export async function writeProject(directory: string, record: ProjectRecord): Promise<void> {
  await makeDirectory(nodeRecords(directory))
  await writeDurable(fileOf(directory), JSON.stringify({ ...record, version: recordVersion }))
}

/**
 * The record in a directory; undefined when there is none that can be read, which means that the directory is not ours. `newer`:
 * a newer program wrote it, and of what it says only the name is known.
 */
export async function readProject(
  directory: string,
): Promise<{ record: ProjectRecord; damaged: boolean; newer?: NewerRecord } | undefined> {
  try {
    const found = await readDurable(fileOf(directory), (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(ProjectRecord, value)) throw new Error('not the record of a project')
      return value
    })
    return found && { record: found.value, damaged: found.damaged }
  } catch (error) {
    if (!(error instanceof NewerRecord)) throw error
    const { project_id, name } = error.content
    if (typeof project_id !== 'string') return undefined
    const record: ProjectRecord = {
      ...{ version: recordVersion, project_id, temporary: false, variables: null, open: false, deleted: [] },
      name: typeof name === 'string' ? name : null,
    }
    return { record, damaged: false, newer: error }
  }
}

/** How often the files of a project are removed while another program makes new ones. */
const maxSweeps = 5

/**
 * Deletes the directory of a project when it has our marker with its id. The marker is deleted last: until then a service that
 * comes later can tell that the directory is ours. 409 when another program goes on writing there.
 */
export async function deleteProject(directory: string, projectId: string): Promise<void> {
  const found = await readProject(directory)
  if (found?.record.project_id !== projectId) return
  if (found.newer !== undefined) throw found.newer
  await withDiskErrors('The directory of the project', async () => {
    const others = async () => (await readdir(directory)).filter((name) => name !== markerDirectory)
    for (let sweep = 0; sweep < maxSweeps; sweep++) {
      for (const name of await others()) await removeTree(join(directory, name))
    }
    const [left] = await others()
    if (left !== undefined) {
      throw conflict(
        `The directory of the project: another program writes ${left} there; end it and delete the project again`,
      )
    }
    const marker = join(directory, markerDirectory)
    for (const name of await readdir(marker))
      if (join(marker, name) !== fileOf(directory)) await removeTree(join(marker, name))
    await removeTreeDurable(marker)
    // What another program has there by now, or a file system that is mounted there, is not ours.
    await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (!['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOENT', 'EACCES', 'EPERM'].includes(error.code ?? '')) throw error
    })
  })
}

/** Removes what a service that was killed while it deleted a project left of its directory, when nothing else is in it. */
export async function removeEmpty(directory: string): Promise<void> {
  for (const path of [join(directory, markerDirectory), directory]) {
    await rmdir(path).catch(() => {
      // It is not there, or something is in it, or it cannot be removed: it is left as it is.
    })
  }
}

/** Removes what a killed service was writing. */
export async function tidyProject(directory: string): Promise<void> {
  await removeTemporaries(join(directory, markerDirectory))
  await removeTemporaries(nodeRecords(directory))
}

/** Names of the node records, without those kept beside them. */
export async function listNodeRecords(directory: string): Promise<string[]> {
  const names = await readdir(nodeRecords(directory)).catch(() => [])
  return [...new Set(names.map((name) => name.replace(/\.bak$/, '')))].filter(
    (name) => nodeOfRecord(name) !== undefined,
  )
}
