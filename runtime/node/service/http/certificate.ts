import { X509Certificate } from 'node:crypto'
import { unwatchFile, watchFile } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Log } from '../../os/log/log.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import type { LoadedConfig } from '../config/load.ts'

/** How often the files are looked at, ms. By their times: a tool that renews certificates replaces files and links. */
const lookMs = 5000

/** A certificate with its chain, and its private key, as PEM. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

/** The certificate of the service, from the files that the settings `tls.cert` and `tls.key` name. */
export class Certificate {
  readonly #config: LoadedConfig
  readonly #log: Log
  readonly #unlisten: () => void
  #current: Pair
  #watched: readonly string[] = []
  #use: (pair: Pair) => void = () => {}
  #reading: Promise<void> = Promise.resolve()

  private constructor(config: LoadedConfig, log: Log, pair: Pair) {
    this.#config = config
    this.#log = log
    this.#current = pair
    this.#watch()
    this.#unlisten = config.listen(() => {
      this.#watch()
      return this.renew()
    })
  }

  /** Undefined when the settings name none. Rejects with the reason, for a person, when the files cannot be used. */
  static async open(config: LoadedConfig, log: Log): Promise<Certificate | undefined> {
    if (config.current.tls.cert === '') return undefined
    return new Certificate(config, log, await read(config))
  }

  get current(): Pair {
    return this.#current
  }

  /** Has another pair used when the files change. */
  follow(use: (pair: Pair) => void): void {
    this.#use = use
  }

  /** Reads the files again. What cannot be used is logged, and the old pair stays. */
  renew(): Promise<void> {
    // One after the other: the later look is the one that counts.
    this.#reading = this.#reading.then(async () => {
      try {
        const pair = await read(this.#config)
        if (pair.cert === this.#current.cert && pair.key === this.#current.key) return
        this.#use(pair)
        this.#current = pair
        this.#log.info({ valid_to: new X509Certificate(pair.cert).validTo }, 'another TLS certificate is in use')
      } catch (error) {
        this.#log.error(
          { reason: (error as Error).message },
          'the TLS certificate is not replaced: the new one cannot be used',
        )
      }
    })
    return this.#reading
  }

  close(): void {
    this.#unlisten()
    for (const path of this.#watched) unwatchFile(path, this.#changed)
  }

  #watch(): void {
    for (const path of this.#watched) unwatchFile(path, this.#changed)
    const { cert, key } = this.#config.current.tls
    this.#watched = [cert, key]
    for (const path of this.#watched) watchFile(path, { interval: lookMs, persistent: false }, this.#changed)
  }

  readonly #changed = () => void this.renew()
}

/** The pair that the settings name. Rejects when a file cannot be read, or they do not belong together. */
async function read({ current }: LoadedConfig): Promise<Pair> {
  const [cert, key] = await Promise.all([text('tls.cert', current.tls.cert), text('tls.key', current.tls.key)])
  try {
    createSecureContext({ cert, key })
  } catch (cause) {
    throw new Error(
      `tls.cert and tls.key: ${current.tls.cert} and ${current.tls.key} are not a PEM certificate and its private key: ${(cause as Error).message}`,
      { cause },
    )
  }
  return { cert, key }
}

async function text(key: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new Error(`${key}: ${path} cannot be read: ${reasonOf(cause)}`, { cause })
  }
}
