import { onTestFinished } from 'vitest'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import { hangMs } from '../../../support/limits.ts'
import type { TestService } from '../../../support/service.ts'

/** The events of a project from now on. */
export class LabFeed {
  readonly seen: FeedEvent[] = []
  #wake: () => void = () => {}

  static async open(service: TestService, project: string): Promise<LabFeed> {
    const over = new AbortController()
    onTestFinished(() => over.abort())
    const response = await service.fetch(`${project}/notifications`, { signal: over.signal })
    const feed = new LabFeed()
    const opened = new Promise<void>((resolve) => {
      feed.#wake = resolve
    })
    void feed.#read(response).catch(() => {})
    await opened
    return feed
  }

  /** The first event, of those that came already too, that fits. */
  async until(fits: (event: FeedEvent) => boolean, ms = hangMs): Promise<FeedEvent> {
    const deadline = Date.now() + ms
    for (;;) {
      const found = this.seen.find(fits)
      if (found !== undefined) return found
      if (Date.now() >= deadline) throw new Error(`not among ${JSON.stringify(this.seen).slice(0, 4000)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadline - Date.now())
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  becomes(status: MachineEmulatorNode['status']): Promise<FeedEvent> {
    return this.until(({ action, event }) => action === 'node.updated' && event.status === status)
  }

  /** The messages of a kind that came so far. */
  messages(action: 'log.error' | 'log.warning' | 'log.info'): string[] {
    return this.seen.filter((it) => it.action === action).map(({ event }) => String(event.message))
  }

  /** The states that were told, one after the other. */
  get states(): string[] {
    const told = this.seen.filter(({ action }) => action === 'node.updated').map(({ event }) => String(event.status))
    return told.filter((state, index) => state !== told[index - 1])
  }

  async #read(response: Response): Promise<void> {
    let text = ''
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        const event = JSON.parse(line) as FeedEvent
        if (event.action !== 'ping') this.seen.push(event)
      }
      this.#wake()
    }
  }
}

export interface FeedEvent {
  readonly action: string
  readonly event: Readonly<Record<string, unknown>>
}
