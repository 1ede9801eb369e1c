import type { ReportedProjects } from '../../../src/fleet/members/members.ts'
import { computeKey } from '../../../src/fleet/pool/computes.ts'
import type { PlacementTable } from './placement-table.ts'

/** Most projects that are kept of one compute: it may report projects that it does not have. */
const maxOfCompute = 10_000

/** The projects that computes have reported and that the gateway did not place there, in a table of the directory. */
export class ReportedProjectsTable implements ReportedProjects {
  readonly maxAsked = 20
  readonly #sql: SqlStorage
  readonly #placements: PlacementTable
  /** How many are kept of each compute, as far as this program has counted them. */
  readonly #counts = new Map<string, number>()

  constructor(sql: SqlStorage, placements: PlacementTable) {
    this.#sql = sql
    this.#placements = placements
    sql.exec(
      `CREATE TABLE IF NOT EXISTS told_projects (
        project_id TEXT, compute_id TEXT, PRIMARY KEY (project_id, compute_id)) WITHOUT ROWID`,
    )
    sql.exec('CREATE INDEX IF NOT EXISTS told_by_compute ON told_projects (compute_id)')
  }

  /** Takes the list of all projects of a compute; projects that it reported before and that are not in the list are forgotten. */
  async replace(computeId: string, projectIds: readonly string[]): Promise<void> {
    const id = computeKey(computeId)
    const others = new Set<string>()
    for (const project of projectIds) {
      if (others.size >= maxOfCompute) break
      if ((await this.#placements.get(project)) !== id) others.add(project)
    }
    for (const project of this.#of(id)) {
      if (others.delete(project)) continue
      this.#sql.exec('DELETE FROM told_projects WHERE project_id = ? AND compute_id = ?', project, id)
      this.#counts.delete(id)
    }
    for (const project of others) this.add(project, id)
  }

  add(projectId: string, computeId: string): void {
    const id = computeKey(computeId)
    const count = this.#counts.get(id) ?? this.#of(id).length
    this.#counts.set(id, count)
    if (count >= maxOfCompute) return
    const { rowsWritten } = this.#sql.exec('INSERT OR IGNORE INTO told_projects VALUES (?, ?)', projectId, id)
    if (rowsWritten > 0) this.#counts.set(id, count + 1)
  }

  #of(id: string): string[] {
    const rows = this.#sql.exec<{ project_id: string }>('SELECT project_id FROM told_projects WHERE compute_id = ?', id)
    return rows.toArray().map(({ project_id }) => project_id)
  }

  /** The computes that have reported a project. */
  computesOf(projectId: string): string[] {
    const rows = this.#sql.exec<{ compute_id: string }>(
      'SELECT compute_id FROM told_projects WHERE project_id = ?',
      projectId,
    )
    return rows.toArray().map(({ compute_id }) => compute_id)
  }

  /** The compute was removed. */
  forget(computeId: string): void {
    this.#counts.delete(computeKey(computeId))
    this.#sql.exec('DELETE FROM told_projects WHERE compute_id = ?', computeKey(computeId))
  }
}
