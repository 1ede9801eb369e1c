import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { DirectLinkJoin } from '../../../../src/model/direct-link.ts'
import { Variable } from '../../../../src/model/project.ts'
import { nullable, PortNumber } from '../../../../src/model/schema/fields.ts'
import { Filters } from '../../../../src/model/schema/filters.ts'

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

/** A direct link on disk. */
export type StoredLink = Static<typeof StoredLink>
const StoredLink = Type.Object({
  ...Type.Omit(DirectLinkJoin, ['filters_ab', 'filters_ba', 'suspend']).properties,
  filters_ab: Filters,
  filters_ba: Filters,
  suspend: Type.Boolean(),
  line: Type.Union([Type.Literal('ethernet'), Type.Literal('serial')]),
  /** Why the ports are separated, though the link was not removed. */
  detached: Type.Optional(Type.String()),
  /** UDP ports of the two ends, while these are in two keepers. */
  udp_ports: Type.Optional(Type.Tuple([PortNumber, PortNumber])),
})

/** A project on disk: `.patchbay/project.json`. The file also marks the directory as a project of Patchbay. */
export type EngineProjectRecord = Static<typeof EngineProjectRecord>
export const EngineProjectRecord = Type.Object({
  version: Type.Integer({ minimum: 1, maximum: recordVersion }),
  project_id: Type.String({ format: 'uuid' }),
  name: nullable(Type.String()),
  temporary: Type.Boolean(),
  variables: nullable(Type.Array(Variable)),
  /** Whether the service opens it at its start. */
  open: Type.Boolean(),
  /** An unfinished operation, close or removal from disk. After a crash the next service finishes it. */
  ending: Type.Optional(Type.Union([Type.Literal('close'), Type.Literal('remove')])),
  /** UDP ports reserved for links, until they are released or the NIO that uses one is deleted. */
  udp_ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }))),
  /** Its direct links (nodes/direct-links.ts). */
  links: Type.Optional(Type.Array(StoredLink)),
  /** Directories of deleted nodes that the next commit removes, as `{kind}/{node_id}`. */
  deleted: Type.Array(Type.String({ pattern: '^[a-z-]+/[0-9a-f-]{36}$' })),
})

const fileOf = (directory: string): string => join(directory, markerDirectory, 'project.json')
export const nodeRecords = (directory: string): string => join(directory, markerDirectory, 'nodes')

/** How a node is being deleted: its files at once, or by the next commit. */
export type Deletion = 'now' | 'later'

/** The path of a node's record. The name includes a pending deletion. */
export const nodeRecordFile = (directory: string, kind: string, nodeId: string, deletion?: Deletion): string =>
  join(nodeRecords(directory), `${kind}-${nodeId}${deletion === undefined ? '' : `.deleting-${deletion}`}.json`)

/** Parses the file name of a node's record; undefined for other files. */
export function nodeOfRecord(name: string): { kind: string; nodeId: string; deletion?: Deletion } | undefined {
  const [, kind, nodeId, deletion] = /^([a-z-]+)-([0-9a-f-]{36})(?:\.deleting-(now|later))?\.json$/.exec(name) ?? []
  if (kind === undefined || nodeId === undefined) return undefined
  return { kind, nodeId, ...(deletion !== undefined && { deletion: deletion as Deletion }) }
}

/** Writes the record; the first one is also the marker. */
export async function writeProject(directory: string, record: EngineProjectRecord): Promise<void> {
  await makeDirectory(nodeRecords(directory))
  await writeDurable(fileOf(directory), JSON.stringify({ ...record, version: recordVersion }))
}

/**
 * The record in a directory; undefined when none can be read, so the directory is not a project. `newer`: a newer version wrote it,
 * and only the name is known.
 */
export async function readProject(
  directory: string,
): Promise<{ record: EngineProjectRecord; damaged: boolean; newer?: NewerRecord } | undefined> {
  try {
    const found = await readDurable(fileOf(directory), (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(EngineProjectRecord, value)) throw new Error('not the record of a project')
      return value
    })
    return found && { record: found.value, damaged: found.damaged }
  } catch (error) {
    if (!(error instanceof NewerRecord)) throw error
    const { project_id, name } = error.content
    if (typeof project_id !== 'string') return undefined
    const record: EngineProjectRecord = {
      version: recordVersion,
      project_id,
      temporary: false,
      variables: null,
      open: false,
      deleted: [],
      name: typeof name === 'string' ? name : null,
    }
    return { record, damaged: false, newer: error }
  }
}

/** Maximum number of removals while another program creates new files. */
const maxSweeps = 5

/**
 * Deletes the directory of a project if its marker has the project's id. The marker is deleted last, so that a later service can
 * finish the deletion. 409 when another program keeps writing there.
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
        `The directory of the project: another program still writes ${left} there; end that program and delete the project again`,
      )
    }
    const marker = join(directory, markerDirectory)
    for (const name of await readdir(marker))
      if (join(marker, name) !== fileOf(directory)) await removeTree(join(marker, name))
    await removeTreeDurable(marker)
    // New files of another program, or a mounted file system, must stay.
    await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (!['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOENT', 'EACCES', 'EPERM'].includes(error.code ?? '')) throw error
    })
  })
}

/** Removes what a killed service left of a project whose creation it had begun, or whose deletion it had nearly finished. */
export async function removeRemains(directory: string): Promise<void> {
  await tidyProject(directory).catch(ignore('what cannot be removed stays, and is not a project'))
  for (const path of [nodeRecords(directory), join(directory, markerDirectory), directory]) {
    await rmdir(path).catch(() => {
      // The directory is missing, not empty or not removable.
    })
  }
}

/** Removes temporary files of a killed service. */
export async function tidyProject(directory: string): Promise<void> {
  await removeTemporaries(join(directory, markerDirectory))
  await removeTemporaries(nodeRecords(directory))
}

/** Names of the node records, without their backups. */
export async function listNodeRecords(directory: string): Promise<string[]> {
  const names = await readdir(nodeRecords(directory)).catch(() => [])
  return [...new Set(names.map((name) => name.replace(/\.bak$/, '')))].filter(
    (name) => nodeOfRecord(name) !== undefined,
  )
}
