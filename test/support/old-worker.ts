import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'

/** Secrets of the Worker that stored it, which tests have, too. */
export const oldBindings = {
  FLEET_KEY: 'a secret of tests that is long enough',
  ADMIN_TOKEN: 'the-admin-token-of-tests',
}

/** What the Worker of an earlier version stored. `scripts/old-worker-state.ts` made it. */
export interface OldWorkerState {
  /** Below the data directory of the Worker, in base64. */
  readonly files: Readonly<Record<string, string>>
  /** Of the compute that had joined. */
  readonly joinedId: string
  /** Where each was. */
  readonly projects: { readonly near: string; readonly joined: string }
  readonly tokens: Readonly<Record<'operate' | 'read' | 'revoked' | 'join', string>>
  /** Of the compute `near`. */
  readonly credentials: { readonly user: string; readonly password: string }
  /** A lab with a node on `near`, where that version had labs. */
  readonly lab?: { readonly id: string; readonly node: string }
  /** With the compute `near`, a token to operate it and a project there, where that version had organizations. */
  readonly organization?: { readonly id: string; readonly token: string; readonly project: string }
  /** The list of computes, as that Worker showed it. */
  readonly shown: readonly Record<string, unknown>[]
}

/** The versions whose Workers stored something. `fleet`: the last one in which the directory had the tunnels of all computes. */
export type OldWorkerVersion = '0.1.0' | 'fleet'

/** Writes it into a directory. */
export async function unpackOldWorker(version: OldWorkerVersion, data: string): Promise<OldWorkerState> {
  const packed = await readFile(join(import.meta.dirname, `../fixtures/worker-${version}.json.br`))
  const state = JSON.parse(brotliDecompressSync(packed).toString('utf8')) as OldWorkerState
  for (const [name, content] of Object.entries(state.files)) {
    const path = join(data, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, Buffer.from(content, 'base64'))
  }
  return state
}
