import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { SerialQueue } from '../../../src/async/serial-queue.ts'
import { EndedSessions } from '../../../src/auth/ended-sessions.ts'
import type { Session, SessionKeeper } from '../../../src/auth/sessions.ts'
import { signingKey } from '../../../src/auth/signed-text.ts'
import { type Tokens, tokenOfKey } from '../../../src/auth/tokens.ts'
import type { Log } from '../log/log.ts'
import { translated } from '../storage/disk.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import { closeToOthers, putAside } from '../storage/secret-file.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  until: Type.Integer(),
  sessions: Type.Array(Type.Object({ id: Type.String(), begunAt: Type.Integer(), endsAt: Type.Integer() })),
})
const keyForm = /^[0-9a-f]{64}$/

/** The key that sessions are signed with, in `{data}/session-key`: made once; without the file all sessions end. */
export async function sessionKey(data: string): Promise<CryptoKey> {
  const path = join(data, 'session-key')
  const found = await readDurable(path, (text) => {
    if (keyForm.test(text.trim())) return text.trim()
    throw new Error('not a key')
  })
  const secret = found?.value ?? randomBytes(32).toString('hex')
  if (found === undefined) await writeDurable(path, `${secret}\n`)
  for (const it of [path, `${path}.bak`]) await closeToOthers(it)
  return signingKey(secret, 'sessions')
}

/** Which sessions were ended, in `{data}/ended-sessions.json`. */
export class SessionFiles implements SessionKeeper {
  readonly #path: string
  readonly #tokens: Pick<Tokens, 'holds'>
  readonly #ended: EndedSessions
  readonly #writes = new SerialQueue()

  private constructor(path: string, tokens: Pick<Tokens, 'holds'>, ended: EndedSessions) {
    this.#path = path
    this.#tokens = tokens
    this.#ended = ended
  }

  static async open({ data, tokens, log }: { data: string; tokens: Pick<Tokens, 'holds'>; log: Log }) {
    const path = join(data, 'ended-sessions.json')
    const found = await readDurable(path, (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(FileContent, value)) throw new Error('not a list of sessions')
      return value
    })
    // What is not in the copy before may have been ended: nobody who has a session of that time goes on with it.
    const isLost = found?.damaged === true || (found === undefined && (await putAside(path)))
    if (isLost) log.warn({ path }, 'the list of ended sessions cannot be read: all sessions are ended')
    const record = isLost ? { until: Date.now(), sessions: [] } : found?.value
    return new SessionFiles(path, tokens, new EndedSessions(record))
  }

  async holds(session: Session): Promise<boolean> {
    if (this.#ended.has(session)) return false
    const token = tokenOfKey(session.key)
    return token === undefined || this.#tokens.holds(token)
  }

  /** 507 when the disk is full: the session has ended until a restart then. */
  end(session: Session): Promise<void> {
    this.#ended.add(session, Date.now())
    return this.#writes.run(() =>
      translated('The session has ended, which is not saved: it would go on after a restart', () =>
        writeDurable(this.#path, `${JSON.stringify({ version: 1, ...this.#ended.record() })}\n`),
      ),
    )
  }
}
