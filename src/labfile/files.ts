import { mapLimit } from '../lib/async/map-limit.ts'
import { sha256, toHex } from '../lib/crypto/secret.ts'
import { quotedPath } from '../lib/text/escape.ts'
import type { DesiredConfig, DesiredDay0 } from './desired.ts'
import { type Diagnostics, enough } from './diagnostics.ts'
import type { Position } from './position.ts'

/** Most configurations of a lab file, with the files of CDs: each gets a digest. */
const maxTexts = 10_000

/** A file that a lab file names. */
export interface NamedFile {
  /** As the lab file writes it. */
  readonly path: string
  readonly at: Position
}

type Changeable<T> = { -readonly [K in keyof T]: T[K] }

/** Finds the content of files that a lab file names, and the digests of all texts. It opens nothing. */
export class Contents {
  readonly #diagnostics: Diagnostics
  /** Undefined: the contents are not known yet; all texts are empty. */
  readonly #files: Readonly<Record<string, string>> | undefined
  readonly named: NamedFile[] = []
  readonly #texts = new Map<Position, Changeable<DesiredConfig>[]>()
  #count = 0
  readonly #discs: Changeable<DesiredDay0>[] = []

  constructor(diagnostics: Diagnostics, files: Readonly<Record<string, string>> | undefined) {
    this.#diagnostics = diagnostics
    this.#files = files
  }

  /** Whether a text is known: it is in the lab file, or in a file that was sent. */
  has({ file }: Pick<DesiredConfig, 'file'>): boolean {
    return file === undefined || (this.#files !== undefined && Object.hasOwn(this.#files, file))
  }

  /** A text of the lab file, or of a file that it names. Its digest comes with `digests`. */
  of(given: string | { readonly text: string }, at: Position): DesiredConfig {
    // Nodes with the same template have the same text.
    const known = this.#texts.get(at) ?? []
    const isSame = ({ file, text }: DesiredConfig) =>
      typeof given === 'string' ? file === given : file === undefined && text === given.text
    const same = known.find(isSame)
    if (same !== undefined) return same
    this.#count += 1
    if (this.#count > maxTexts) {
      this.#diagnostics.add(at, `the file has more than ${maxTexts} configurations and files of CDs`)
      throw enough
    }
    const config =
      typeof given === 'string'
        ? { text: this.#file(given, at), digest: '', file: given, at }
        : { text: given.text, digest: '', at }
    this.#texts.set(at, [...known, config])
    return config
  }

  disc({ medium, label, files }: Pick<DesiredDay0, 'medium' | 'label' | 'files'>, at: Position): DesiredDay0 {
    const disc = { medium, label, files, digest: '', at }
    this.#discs.push(disc)
    return disc
  }

  #file(path: string, at: Position): string {
    this.named.push({ path, at })
    if (this.#files === undefined) return ''
    if (Object.hasOwn(this.#files, path)) return this.#files[path] ?? ''
    this.#diagnostics.add(at, `the content of the file ${quotedPath(path)} was not sent with the lab file`)
    return ''
  }

  /** Sets the digests of all texts. */
  async digests(): Promise<void> {
    const texts = [...this.#texts.values()].flat()
    await mapLimit(texts, async (config) => (config.digest = await digestOf(config.text)))
    await mapLimit(this.#discs, async (disc) => {
      const files = Object.entries(disc.files).map(([name, { digest }]) => [name, digest])
      const content = [disc.label, files.sort(), ...(disc.medium === 'cd' ? [] : [disc.medium])]
      disc.digest = await digestOf(JSON.stringify(content))
    })
  }
}

/** The SHA-256 of a text in hexadecimal digits, as in the entity tags of configurations. */
export const digestOf = async (text: string): Promise<string> => toHex(await sha256(text))

/** Whether a path leaves the directory of the lab file, by its words alone: links are not resolved. */
export function isOutside(path: string): boolean {
  if (/^(?:[/\\]|[A-Za-z]:)/.test(path)) return true
  let depth = 0
  for (const word of path.split(/[/\\]/)) {
    if (word === '..') depth -= 1
    else if (word !== '' && word !== '.') depth += 1
    if (depth < 0) return true
  }
  return false
}
