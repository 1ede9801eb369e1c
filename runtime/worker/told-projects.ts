import { computeKey } from '../../src/fleet/computes.ts'
import type { ToldProjects as Told } from '../../src/gateway/members.ts'
import type { PlacementTable } from './placement-table.ts'

/** The projects that computes have reported and that the gateway did not place there, in a table of the directory. */
export class ToldProjects implements Told {
  readonly maxAsked = 20
  readonly #sql: SqlStorage
  readonly #placements: PlacementTable

  constructor(sql: SqlStorage, placements: PlacementTable) {
    this.#sql = sql
    this.#placements = placements
    sql.exec(
      `CREATE TABLE IF NOT EXISTS told_projects (
        project_id TEXT, compute_id TEXT, PRIMARY KEY (project_id, compute_id)) WITHOUT ROWID`,
    )
    sql.exec('CREATE INDEX IF NOT EXISTS told_by_compute ON told_projects (compute_id)')
  }

  /** Takes the list of all projects of a compute. */
  async tell(computeId: string, projectIds: readonly string[]): Promise<void> {
    const others: string[] = []
    for (const id of projectIds) if ((await this.#placements.get(id)) !== computeKey(computeId)) others.push(id)
    this.forget(computeId)
    for (const id of others) this.add(id, computeId)
  }

  add(projectId: string, computeId: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO told_projects VALUES (?, ?)', projectId, computeKey(computeId))
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
    this.#sql.exec('DELETE FROM told_projects WHERE compute_id = ?', computeKey(computeId))
  }
}
