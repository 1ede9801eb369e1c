/** What was measured, the figure, and more about it. */
export type Row = readonly [what: string, figure: string, more: string]

export function printTable(rows: readonly Row[]): void {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const [what, figure, more] of rows) {
    console.log(`${what.padEnd(widths[0] ?? 0)}  ${figure.padStart(widths[1] ?? 0)}  ${more}`)
  }
}
