import { conflict } from '../lib/errors/api-error.ts'
import type { SharedDocument } from './lab/shared-document.ts'

/** Width and height of an SVG in pixels, from its attributes or its view box; undefined when it has neither. */
export function sizeOfSvg(text: string): { width: number; height: number } | undefined {
  const tag = /<svg\b[^>]*>/i.exec(text)?.[0] ?? ''
  const attribute = (name: string) =>
    Number.parseFloat(new RegExp(`\\s${name}\\s*=\\s*["']\\s*([\\d.]+)`, 'i').exec(tag)?.[1] ?? '')
  const [, , wide, high] =
    /viewBox\s*=\s*["']([^"']*)/i
      .exec(tag)?.[1]
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? []
  const [width, height] = [attribute('width') || wide, attribute('height') || high]
  if (width === undefined || height === undefined || !(width > 0) || !(height > 0)) return undefined
  return { width: Math.round(width), height: Math.round(height) }
}

const maxSymbols = 500

/** The symbols that users uploaded, as SVG. */
export class Symbols {
  readonly #own: SharedDocument<string>

  constructor(own: SharedDocument<string>) {
    this.#own = own
  }

  names(): string[] {
    return [...this.#own.values.keys()].sort()
  }

  get(id: string): string | undefined {
    return this.#own.values.get(id)
  }

  async save(id: string, text: string): Promise<void> {
    await this.#own.save(id, text, (count) => {
      if (count >= maxSymbols) throw conflict(`The limit of ${maxSymbols} symbols is reached; replace one of them`)
    })
  }
}
