import { Check } from '@sinclair/typebox/value'
import { TokenRecord } from '../../../src/model/access/access-token.ts'
import type { MetricFamily } from '../../../src/model/metrics.ts'
import { type EndedRecord, type EndedSession, EndedSessions } from '../../../src/server/auth/ended-sessions.ts'
import type { ListReason, TokenList } from '../../../src/server/auth/listed-tokens.ts'
import type { TokenStore } from '../../../src/server/auth/token-store.ts'

/** The tokens in a table of the Durable Object, with hashes in place of secrets. */
export class TokenTable implements TokenStore {
  readonly #sql: SqlStorage
  readonly #warn: (message: string) => void
  readonly #removed: (tokenId: string) => void
  readonly #readings: Record<ListReason, number> = { signed: 0, old: 0 }
  /** Revision of the list for isolates; undefined after a change, until the next read makes a new one. */
  #revision: string | undefined
  /** The list for isolates, until the next change: many isolates ask for it. */
  #entries: TokenList['tokens']

  /** `removed` is called for every revoked token. */
  constructor(sql: SqlStorage, warn: (message: string) => void, removed: (tokenId: string) => void) {
    this.#sql = sql
    this.#warn = warn
    this.#removed = removed
    sql.exec('CREATE TABLE IF NOT EXISTS tokens (token_id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID')
    // JSON functions: https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/
    sql.exec(`CREATE INDEX IF NOT EXISTS tokens_of_computes ON tokens (${computeIdIn})`)
    sql.exec(
      'CREATE TABLE IF NOT EXISTS ended_sessions (only INTEGER PRIMARY KEY CHECK (only = 1), record TEXT NOT NULL)',
    )
  }

  async list(): Promise<readonly TokenRecord[]> {
    return this.#records()
  }

  async count(): Promise<number> {
    return this.#sql.exec<{ count: number }>('SELECT count(*) AS count FROM tokens').one().count
  }

  async ofCompute(computeId: string): Promise<readonly TokenRecord[]> {
    const rows = this.#sql.exec<Row>(`SELECT record FROM tokens WHERE ${computeIdIn} = lower(?)`, computeId).toArray()
    return rows.map((row) => this.#recordOf(row)).filter((record) => record !== undefined)
  }

  async get(tokenId: string): Promise<TokenRecord | undefined> {
    const [row] = this.#sql.exec<Row>('SELECT record FROM tokens WHERE token_id = ?', tokenId).toArray()
    return row && this.#recordOf(row)
  }

  async put(record: TokenRecord): Promise<void> {
    this.#change()
    this.#sql.exec('INSERT OR REPLACE INTO tokens VALUES (?, ?)', record.token_id, JSON.stringify(record))
  }

  async replace(record: TokenRecord): Promise<boolean> {
    // The revision stays: the lists that isolates have are still right for their purpose.
    this.#entries = undefined
    const { rowsWritten } = this.#sql.exec(
      'UPDATE tokens SET record = ? WHERE token_id = ?',
      JSON.stringify(record),
      record.token_id,
    )
    return rowsWritten > 0
  }

  async remove(tokenId: string): Promise<void> {
    this.#change()
    this.#sql.exec('DELETE FROM tokens WHERE token_id = ?', tokenId)
    this.#removed(tokenId)
  }

  /** Records that a session was ended before it expired. */
  endSession(session: EndedSession): void {
    const ended = new EndedSessions(this.#endedSessions())
    ended.add(session, Date.now())
    this.#change()
    this.#sql.exec('INSERT OR REPLACE INTO ended_sessions VALUES (1, ?)', JSON.stringify(ended.record()))
  }

  /** Whether a session was ended before it expired. */
  hasEnded(session: EndedSession): boolean {
    return new EndedSessions(this.#endedSessions()).has(session)
  }

  #endedSessions(): EndedRecord {
    const [row] = this.#sql.exec<Row>('SELECT record FROM ended_sessions').toArray()
    return row === undefined ? { until: 0, sessions: [] } : (JSON.parse(row.record) as EndedRecord)
  }

  /** The valid tokens; without the list when `known` is the present revision. */
  async listed(known: string | undefined, reason: ListReason): Promise<TokenList> {
    this.#readings[reason] += 1
    this.#revision ??= crypto.randomUUID()
    const list = { revision: this.#revision, at: Date.now() }
    if (known === list.revision) return list
    this.#entries ??= this.#valid()
    return { ...list, tokens: this.#entries }
  }

  #valid(): Required<TokenList>['tokens'] {
    const records = this.#records()
    const ids = records.map(({ token_id }) => token_id)
    const old = records.filter(({ signed }) => signed !== true)
    return { ids, old, ended: this.#endedSessions() }
  }

  #change(): void {
    this.#revision = undefined
    this.#entries = undefined
  }

  /** How often isolates have read the list. */
  figures(): MetricFamily {
    return {
      name: 'patchbay_object_token_lists_total',
      help: 'Times that isolates read the list of tokens; old: for a text that could be a token without a signature.',
      type: 'counter',
      samples: Object.entries(this.#readings).map(([reason, value]) => ({ labels: { reason }, value })),
    }
  }

  #records(): TokenRecord[] {
    const rows = this.#sql.exec<Row>('SELECT record FROM tokens').toArray()
    return rows.map((row) => this.#recordOf(row)).filter((record) => record !== undefined)
  }

  #recordOf({ record }: Row): TokenRecord | undefined {
    const value: unknown = JSON.parse(record)
    if (Check(TokenRecord, value)) return value
    this.#warn('The record of a token cannot be read')
    return undefined
  }
}

/** In SQL: the compute of a token, in lower case. */
const computeIdIn = "lower(json_extract(record, '$.compute_id'))"

interface Row extends Record<string, SqlStorageValue> {
  record: string
}
