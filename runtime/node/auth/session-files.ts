import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { SerialQueue } from '../../../src/async/serial-queue.ts'
import { EndedSessions } from '../../../src/auth/ended-sessions.ts'
import type { Session, SessionKeeper } from '../../../src/auth/sessions.ts'
import { signingKey } from '../../../src/auth/signed-text.ts'
import { type Tokens, tokenOfKey } from '../../../src/auth/tokens.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import { closeToOthers } from '../storage/secret-file.ts'
import type { RecordFormat, ServiceRecords } from '../storage/service-records.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  until: Type.Integer(),
  sessions: Type.Array(Type.Object({ id: Type.String(), begunAt: Type.Integer(), endsAt: Type.Integer() })),
})

const format: RecordFormat<Static<typeof FileContent>> = {
  file: 'ended-sessions.json',
  name: 'the ended sessions',
  parse(text) {
    const value: unknown = JSON.parse(text)
    if (!Check(FileContent, value)) throw new Error('not a list of sessions')
    return value
  },
  lost: 'all sessions are ended',
}

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
  readonly #files: ServiceRecords
  readonly #tokens: Pick<Tokens, 'holds'>
  readonly #ended: EndedSessions
  readonly #writes = new SerialQueue()

  private constructor(files: ServiceRecords, tokens: Pick<Tokens, 'holds'>, ended: EndedSessions) {
    this.#files = files
    this.#tokens = tokens
    this.#ended = ended
  }

  static async open(files: ServiceRecords, tokens: Pick<Tokens, 'holds'>): Promise<SessionFiles> {
    const { state, value } = await files.read(format)
    // A session that is not in the copy before may have been ended: no session of that time goes on.
    const isLost = state === 'copy' || state === 'lost'
    if (state === 'copy') files.log.warn({}, 'the list of ended sessions may lack some: all sessions are ended')
    return new SessionFiles(files, tokens, new EndedSessions(isLost ? { until: Date.now(), sessions: [] } : value))
  }

  async holds(session: Session): Promise<boolean> {
    if (this.#ended.has(session)) return false
    const token = tokenOfKey(session.key)
    return token === undefined || this.#tokens.holds(token)
  }

  /** 507 when the disk is full: the session has ended until a restart then. */
  end(session: Session): Promise<void> {
    this.#ended.add(session, Date.now())
    const { file } = format
    const what = 'The session has ended, which is not saved: it would go on after a restart'
    return this.#writes.run(() =>
      this.#files.save({ file, what }, () =>
        writeDurable(this.#files.pathOf(file), `${JSON.stringify({ version: 1, ...this.#ended.record() })}\n`),
      ),
    )
  }
}
