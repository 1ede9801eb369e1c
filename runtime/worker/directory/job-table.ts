import { type JobList, noSuchJob } from '../../../src/labs/jobs/jobs.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { compareText } from '../../../src/lib/text/compare-text.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'
import type { Objects } from '../shared/objects.ts'
import { decode } from '../shared/rpc-json.ts'

const maxJobs = 10_000
/** A list asks the labs of this number of newest jobs. */
const maxListed = 400

/** The lab of each job. The jobs themselves are in the memory of the objects of their labs. */
export class JobTable implements JobList {
  readonly #sql: SqlStorage
  readonly #objects: Objects

  constructor(sql: SqlStorage, objects: Objects) {
    this.#sql = sql
    this.#objects = objects
    sql.exec(
      'CREATE TABLE IF NOT EXISTS lab_jobs (position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, lab TEXT NOT NULL)',
    )
  }

  note(id: string, lab: string | undefined): void {
    if (lab === undefined) this.#sql.exec('DELETE FROM lab_jobs WHERE id = ?', id)
    else {
      this.#sql.exec('INSERT OR REPLACE INTO lab_jobs (id, lab) VALUES (?, ?)', id, lab)
      this.#sql.exec('DELETE FROM lab_jobs WHERE position <= (SELECT max(position) FROM lab_jobs) - ?', maxJobs)
    }
  }

  async list(): Promise<LabJob[]> {
    const newest = 'SELECT lab FROM lab_jobs ORDER BY position DESC LIMIT ?'
    const labs = this.#sql.exec<{ lab: string }>(`SELECT DISTINCT lab FROM (${newest})`, maxListed).toArray()
    const found = await mapLimit(labs, ({ lab }) => this.#of(lab))
    return found.flat().sort((a, b) => compareText(a.started_at, b.started_at))
  }

  async get(id: string): Promise<LabJob> {
    const job = (await this.#of(this.#labOf(id))).find(({ job_id }) => job_id === id)
    if (job === undefined) throw noSuchJob(id)
    return job
  }

  async remove(id: string): Promise<void> {
    await this.#objects.project(this.#labOf(id)).removeJob(id)
  }

  #labOf(id: string): string {
    const [row] = this.#sql.exec<{ lab: string }>('SELECT lab FROM lab_jobs WHERE id = ?', id).toArray()
    if (row === undefined) throw noSuchJob(id)
    return row.lab
  }

  /** The jobs of a lab. Removes rows of jobs that its object no longer has. */
  async #of(lab: string): Promise<LabJob[]> {
    const noted = this.#sql.exec<{ id: string }>('SELECT id FROM lab_jobs WHERE lab = ?', lab).toArray()
    const jobs = decode(await this.#objects.project(lab).jobs())
    for (const { id } of noted) if (!jobs.some(({ job_id }) => job_id === id)) this.note(id, undefined)
    return jobs
  }
}
