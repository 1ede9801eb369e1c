/** Set on `node.updated` when the status changed, so that v1 can say vm.started and vm.stopped. */
export type NodeChange = 'started' | 'stopped' | 'suspended' | 'resumed'

/** A line of a feed as it is sent: `action` and `event` as clients of the protocol know them, and the number of the event. */
export interface SentLine {
  readonly action: string
  readonly event: unknown
  /** The change of a node's status, where the API version shows it. */
  readonly change?: NodeChange
  readonly seq?: number
  readonly project_id?: string
  /** See `NumberedEvent.by`. */
  readonly by?: string
}
