import type { PlacementStore } from '../../../src/fleet/members/members.ts'

/** The compute of each project, in a table of the Durable Object. */
export class PlacementTable implements PlacementStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS placements (project_id TEXT PRIMARY KEY, compute_id TEXT NOT NULL) WITHOUT ROWID',
    )
  }

  /** Ids of the projects that were placed on such computes. */
  idsOn(isWanted: (computeId: string) => boolean): string[] {
    const rows = this.#sql.exec<{ project_id: string; compute_id: string }>('SELECT * FROM placements').toArray()
    return rows.flatMap(({ project_id, compute_id }) => (isWanted(compute_id) ? [project_id] : []))
  }

  async get(projectId: string): Promise<string | undefined> {
    const cursor = this.#sql.exec<{ compute_id: string }>(
      'SELECT compute_id FROM placements WHERE project_id = ?',
      projectId,
    )
    return cursor.toArray()[0]?.compute_id
  }

  async put(projectId: string, computeId: string): Promise<void> {
    this.#sql.exec('INSERT OR REPLACE INTO placements VALUES (?, ?)', projectId, computeId)
  }

  async remove(projectId: string): Promise<void> {
    this.#sql.exec('DELETE FROM placements WHERE project_id = ?', projectId)
  }
}
