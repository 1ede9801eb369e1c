const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** A number of bytes for people, such as `1.4 GB`: decimal units. */
export function bytesText(bytes: number): string {
  const power = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const number = bytes / 1000 ** power
  return `${power === 0 ? number : number.toFixed(number < 10 ? 1 : 0)} ${units[power]}`
}
