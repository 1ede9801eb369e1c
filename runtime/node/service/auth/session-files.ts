import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import type { Session } from '../../../../src/model/access/identity.ts'
import { EndedSessions } from '../../../../src/server/auth/ended-sessions.ts'
import type { SessionKeeper } from '../../../../src/server/auth/sessions.ts'
import { signingKey } from '../../../../src/server/auth/signed-text.ts'
import { type Tokens, tokenOfKey } from '../../../../src/server/auth/tokens.ts'
import { jsonOf, readDurable, writeDurable } from '../../engine/storage/durable-file.ts'
import { closeToOthers } from '../../engine/storage/secret-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  until: Type.Integer(),
  sessions: Type.Array(Type.Object({ id: Type.String(), begunAt: Type.Integer(), endsAt: Type.Integer() })),
})

const format = {
  file: 'ended-sessions.json',
  name: 'the ended sessions',
  parse: jsonOf(FileContent),
  lost: 'all sessions are ended',
}

/** The key that signs sessions, in `{data}/session-key`. It is made once; if the file is removed, all sessions end. */
export async function sessionKey(data: string): Promise<CryptoKey> {
  const path = join(data, 'session-key')
  const found = await readDurable(path, (text) => {
    if (/^[0-9a-f]{64}$/.test(text.trim())) return text.trim()
    throw new Error('not a key')
  })
  const secret = found?.value ?? randomBytes(32).toString('hex')
  if (found === undefined) await writeDurable(path, `${secret}\n`)
  for (const it of [path, `${path}.bak`]) await closeToOthers(it)
  return signingKey(secret, 'sessions')
}

/** The sessions of all organizations: each knows which of its own have ended. */
export const keeperOfEach = (
  keeperOf: (organization: string | undefined) => Promise<SessionKeeper | undefined>,
): SessionKeeper => ({
  holds: async (session) => (await (await keeperOf(session.organization))?.holds(session)) ?? false,
  end: async (session) => (await keeperOf(session.organization))?.end(session),
})

/** The sessions that were ended before they expired, in `{data}/ended-sessions.json`. */
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
    // The list may lack sessions that were ended, so no session of that time stays valid.
    const isLost = state === 'copy' || state === 'lost'
    if (state === 'copy') files.log.warn({}, 'the list of ended sessions may be incomplete: all sessions are ended')
    return new SessionFiles(files, tokens, new EndedSessions(isLost ? { until: Date.now(), sessions: [] } : value))
  }

  async holds(session: Session): Promise<boolean> {
    if (this.#ended.has(session)) return false
    const token = tokenOfKey(session.key)
    return token === undefined || this.#tokens.holds(token)
  }

  /** 507 when the disk is full: the session has ended, but is valid again after a restart. */
  end(session: Session): Promise<void> {
    this.#ended.add(session, Date.now())
    const { file } = format
    const what = 'The end of the session is not saved: after a restart the session is valid again'
    return this.#writes.run(() =>
      this.#files.save({ file, what }, () =>
        writeDurable(this.#files.pathOf(file), `${JSON.stringify({ version: 1, ...this.#ended.record() })}\n`),
      ),
    )
  }
}
