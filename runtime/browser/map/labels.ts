import { type Line, tile } from './geometry.ts'

/** Made when it is first needed: that takes ten times as long as all else that this module does at the begin. */
let characters: Intl.Segmenter | undefined

/** A text of at most so many characters as people count them. Of a longer one the middle is left out: names differ at their ends. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  characters ??= new Intl.Segmenter()
  const all = Array.from(characters.segment(text), ({ segment }) => segment)
  if (all.length <= most) return text
  const last = Math.floor((most - 1) / 2)
  return `${all.slice(0, most - 1 - last).join('')}…${all.slice(all.length - last).join('')}`
}

/** Width of the text at a port, with the space around it, pixels of the map. */
const portWidth = (characters: number): number => Math.max(30, characters * 6 + 14)

/** Width of the badge of a link with a text, pixels of the map. */
export const badgeWidth = (text: string): number => text.length * 6.4 + 14

/** Whether the names of the ports have room beside the badge of a link: on a short link they would cover it. An empty text is no badge. */
export const hasPortRoom = ({ from, to }: Line, badge: string, characters: number): boolean =>
  badge === '' || Math.hypot(to.x - from.x, to.y - from.y) > tile + 2 * portWidth(characters) + badgeWidth(badge)
