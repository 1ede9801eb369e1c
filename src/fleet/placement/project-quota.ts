import { conflict } from '../../lib/errors/api-error.ts'
import { counted } from '../../lib/text/counted.ts'

export interface ProjectQuotaOptions {
  /** Most projects; 0: no limit. Read for every project that is made. */
  readonly max: () => number
  /** Ids of all projects, labs among them. */
  readonly projects: () => ReadonlySet<string>
}

/** Limits the projects of an organization. */
export class ProjectQuota {
  readonly #options: ProjectQuotaOptions
  /** Projects that are being made: they count, too. */
  readonly #coming = new Map<string, number>()

  constructor(options: ProjectQuotaOptions) {
    this.#options = options
  }

  /** Runs what makes a project; 409 before it when the project is a new one above the limit. */
  async during<T>(projectId: string, make: () => Promise<T>): Promise<T> {
    this.requireRoom(projectId)
    const coming = this.#coming
    coming.set(projectId, (coming.get(projectId) ?? 0) + 1)
    try {
      return await make()
    } finally {
      const left = (coming.get(projectId) ?? 1) - 1
      if (left > 0) coming.set(projectId, left)
      else coming.delete(projectId)
    }
  }

  /** 409 when the project is a new one above the limit. */
  requireRoom(projectId: string): void {
    const max = this.#options.max()
    if (max <= 0) return
    const known = this.#options.projects()
    if (known.has(projectId) || this.#coming.has(projectId)) return
    const count = new Set([...known, ...this.#coming.keys()]).size
    if (count >= max)
      throw conflict(`This organization is limited to ${counted(max, 'project')} and has ${count}: delete one first`, {
        code: 'limit-reached',
      })
  }
}
