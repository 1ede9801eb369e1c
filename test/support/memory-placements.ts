import type { PlacementStore } from '../../src/fleet/members/members.ts'

/** Placements that are gone with their test. */
export class MemoryPlacements implements PlacementStore {
  readonly map = new Map<string, string>()

  async get(projectId: string): Promise<string | undefined> {
    return this.map.get(projectId)
  }

  async put(projectId: string, computeId: string): Promise<void> {
    this.map.set(projectId, computeId)
  }

  async remove(projectId: string): Promise<void> {
    this.map.delete(projectId)
  }
}
