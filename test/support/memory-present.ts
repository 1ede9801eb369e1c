import type { PresentReport, PresentStore } from '../../src/labs/directory-registry.ts'

/** Reports of who has labs open, in memory. */
export class MemoryPresent implements PresentStore {
  readonly reports = new Map<string, PresentReport>()

  all(): Iterable<readonly [id: string, report: PresentReport]> {
    return this.reports
  }

  async save(id: string, report: PresentReport | undefined): Promise<void> {
    if (report === undefined) this.reports.delete(id)
    else this.reports.set(id, report)
  }
}
