/** A size in a unit that people read. */
export function sizeText(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toPrecision(3)} ${value === 1 && power === 0 ? 'byte' : units[power]}`
}
