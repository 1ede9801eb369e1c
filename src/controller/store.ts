/** What is kept of a lab: JSON values by key. `project` has its settings; `node/{id}`, `link/{id}` and so on what it has. */
export type LabEntries = ReadonlyMap<string, unknown>

/** The id of a document that is written as a whole, is no lab, and is not kept in memory. */
export const apart = (word: string): string => `apart-${word}`
export const isApart = (id: string): boolean => id.startsWith('apart-')
/** Where labs are known by their names when each lab has a process of its own. */
export interface LabDirectory {
  /** Takes the name of a lab, and keeps what is shown of it in lists. 409 when another lab has the name. */
  put(id: string, head: unknown): Promise<void>
  remove(id: string): Promise<void>
  /** The name, or the next free one with a number. */
  freeName(name: string): Promise<string>
  /** Takes note of a job of a lab; undefined: it is forgotten. */
  job?(jobId: string, projectId: string | undefined): Promise<void>
}

/** Keeps labs. Each runtime has one: files on Node, Durable Objects in a Worker. */
export interface LabStore {
  /** The entry `project` of every lab, by id. */
  heads(): Promise<LabEntries>
  /** Undefined: there is no such lab. */
  load(id: string): Promise<LabEntries | undefined>
  /**
   * Writes entries, all or none; undefined removes one. They are durable when it resolves, and in the order of the calls. 507 when
   * the disk is nearly full.
   */
  save(id: string, changes: LabEntries): Promise<void>
  remove(id: string): Promise<void>
}
