import { join } from 'node:path'
import { conflict } from '../../../src/errors.ts'
import type { Project } from '../../../src/model/project.ts'
import type { LabNode } from '../nodes/lab-node.ts'
import type { ProjectRecord } from './project-record.ts'

/** A project in memory. */
export class OpenProject {
  readonly id: string
  /** Where new projects are created. */
  readonly location: string
  /** By `{kind}:{node_id}`. */
  readonly nodes = new Map<string, LabNode>()
  record: ProjectRecord
  path: string
  /** Set first thing by whoever closes it; from then on nothing new begins in it. */
  isClosing = false

  constructor(record: ProjectRecord, path: string, location: string) {
    this.id = record.project_id
    this.record = record
    this.path = path
    this.location = location
  }

  get filesDirectory(): string {
    return join(this.path, 'project-files')
  }

  /** 409 while it is being closed. */
  requireUsable(): void {
    if (this.isClosing) throw conflict(`project_id: project ${this.id} is being closed`)
  }

  view(): Project {
    const { name, temporary, variables } = this.record
    return { project_id: this.id, name, path: this.path, location: this.location, temporary, variables }
  }
}
