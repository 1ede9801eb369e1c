import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { nullable } from '../../../src/model/common.ts'
import { Variable } from '../../../src/model/project.ts'
import { makeDirectory, readDurable, removeTemporaries, writeDurable } from './durable-file.ts'
import { markerDirectory } from './paths.ts'

/** A project on disk: `.patchbay/project.json`. Its presence is also the marker that the directory is ours. */
export type ProjectRecord = Static<typeof ProjectRecord>
export const ProjectRecord = Type.Object({
  version: Type.Literal(1),
  project_id: Type.String({ format: 'uuid' }),
  name: nullable(Type.String()),
  temporary: Type.Boolean(),
  variables: nullable(Type.Array(Variable)),
  /** Whether a service that starts opens it. */
  open: Type.Boolean(),
  /** Directories of deleted instances that wait for a commit, as `{kind}/{node_id}`. */
  deleted: Type.Array(Type.String({ pattern: '^[a-z-]+/[0-9a-f-]{36}$' })),
})

const fileOf = (directory: string): string => join(directory, markerDirectory, 'project.json')
export const nodeRecords = (directory: string): string => join(directory, markerDirectory, 'nodes')

/** Writes the record, and with the first one the marker. */
export async function writeProject(directory: string, record: ProjectRecord): Promise<void> {
  await makeDirectory(nodeRecords(directory))
  await writeDurable(fileOf(directory), JSON.stringify(record))
}

/** The record in a directory; undefined when there is none that can be read, which means that the directory is not ours. */
export async function readProject(directory: string): Promise<{ record: ProjectRecord; damaged: boolean } | undefined> {
  const found = await readDurable(fileOf(directory), (text) => {
    const value: unknown = JSON.parse(text)
    if (!Check(ProjectRecord, value)) throw new Error('not the record of a project')
    return value
  })
  return found && { record: found.value, damaged: found.damaged }
}

/** Removes what a killed service was writing. */
export async function tidyProject(directory: string): Promise<void> {
  await removeTemporaries(join(directory, markerDirectory))
  await removeTemporaries(nodeRecords(directory))
}

/** Names of the node records, without those kept beside them. */
export async function listNodeRecords(directory: string): Promise<string[]> {
  const names = await readdir(nodeRecords(directory)).catch(() => [])
  return [...new Set(names.map((name) => name.replace(/\.bak$/, '')))].filter((name) =>
    /^[a-z-]+-[0-9a-f-]{36}\.json$/.test(name),
  )
}
