import { signal } from '@preact/signals'

/** A message to the user. */
export interface Notice {
  readonly id: number
  readonly kind: 'error' | 'warning' | 'done'
  readonly text: string
  /** When it was shown first. */
  readonly at: number
  readonly actions: readonly NoticeAction[]
}

/** What a user can do about a message. */
interface NoticeAction {
  readonly verb: string
  readonly run: () => void
}

/** How long a message stays, ms, and one with an action; errors stay until they are closed. */
const [stayMs, actionMs] = [6000, 8000]
const maxNotices = 5
/** Age from which on a message is of an earlier screen, ms. */
const newMs = 2000

/** The messages on the page, the newest last. */
export const notices = signal<readonly Notice[]>([])
let count = 0

/** Shows a message. The same text is not shown twice at a time. */
export function notify(kind: Notice['kind'], text: string, ...actions: NoticeAction[]): void {
  const notice = { id: ++count, kind, text, at: Date.now(), actions }
  notices.value = [...notices.value.filter((it) => it.text !== text), notice].slice(-maxNotices)
  if (kind !== 'error') setTimeout(() => dismiss(notice.id), actions.length === 0 ? stayMs : actionMs)
}

/** What was said on one screen is not for the next one, except what was said just now: that it goes there. */
export function dismissOld(): void {
  notices.value = notices.value.filter(({ at }) => Date.now() - at < newMs)
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((it) => it.id !== id)
}

/** What an error says. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Shows why something failed. */
export const notifyError = (error: unknown): void => notify('error', messageOf(error))
