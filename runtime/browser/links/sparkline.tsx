const [width, height] = [90, 22]
/** Readings that fill the width. */
const most = 60

/** A line of the last readings; its height is that of the largest one. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const top = Math.max(1, ...values)
  const points = values.map((value, index) => {
    const x = width - ((values.length - 1 - index) * width) / (most - 1)
    return `${x.toFixed(1)},${(height - 1 - (value / top) * (height - 3)).toFixed(1)}`
  })
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`at most ${Math.round(top)} frames per second`}
    >
      <polyline points={points.join(' ')} />
    </svg>
  )
}
