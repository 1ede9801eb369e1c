/** Our icons: strokes in a square of 16. */
const shapes = {
  play: 'M5 3.500v9l7-4.500z',
  stop: 'M4.500 4.500h7v7h-7z',
  pause: 'M5.500 4v8M10.500 4v8',
  reload: 'M12.500 8a4.500 4.500 0 1 1-1.400-3.200M12.500 2.500v2.800H9.700',
  undo: 'M6 3.500 3 6.500l3 3M3 6.500h6.500a3.200 3.200 0 0 1 0 6.500H7',
  redo: 'M10 3.500l3 3-3 3M13 6.500H6.500a3.200 3.200 0 0 0 0 6.500H9',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  trash: 'M3 4.500h10M6.500 4.500V3h3v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500',
  console: 'M2.500 3.500h11v9h-11zM5 6.500l2 1.700-2 1.700M8.500 10H11',
  link: 'M3.500 12.500C3.500 6 12.500 10 12.500 3.500M2 12.500h3M11 3.500h3',
  search: 'M7 2.800a4.200 4.200 0 1 1 0 8.400 4.200 4.200 0 0 1 0-8.400zM10.200 10.200l3.300 3.300',
  fit: 'M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10',
  map: 'M3 3h4v4H3zM9 9h4v4H9zM7 5h2.500a1.500 1.500 0 0 1 1.500 1.500V9',
  list: 'M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.1M2.500 8h.1M2.500 12h.1',
  tag: 'M2.500 7.500V3h4.500l6.500 6.500-4.500 4.500zM5 5.500h.1',
  theme: 'M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11',
  keys: 'M2 4.500h12v7H2zM4.500 7h.1M7 7h.1M9.500 7h.1M11.800 7h.1M5 9.300h6',
  external: 'M9 3h4v4M13 3 7.500 8.500M11 9v4H3V5h4',
  download: 'M8 2.500v7.500M5 7.200 8 10l3-2.800M3 13h10',
  copy: 'M5.500 5.500h7.500v7.500H5.500zM10.500 5.500V3H3v7.500h2.500',
  paste: 'M6 3.500H3.500v10h9v-10H10M6 2.500h4v2.500H6zM6 8h4M6 10.500h4',
  pencil: 'M3 13l.6-2.700L10.500 3.400l2.100 2.100-6.900 6.900z',
  check: 'M3 8.500l3.500 3.500L13 5',
  arrange: 'M8 2.500v3.500M8 6 4 10M8 6l4 4M6.500 2.500h3v3h-3zM2.500 10h3v3h-3zM10.500 10h3v3h-3z',
  row: 'M2 8h12M3.500 6h3v4h-3zM9.500 6h3v4h-3z',
  column: 'M8 2v12M6 3.500h4v3H6zM6 9.500h4v3H6z',
  spread: 'M2.500 3v10M13.500 3v10M6 6h4v4H6z',
  back: 'M9.500 3.500 5 8l4.500 4.500',
  front: 'M6 6h7.500v7.500H6zM6 10H2.500V2.500H10V6',
  behind: 'M2.500 2.500H10V10H2.500zM10 6h3.500v7.500H6V10',
  columns: 'M2.500 3.500h11v9h-11zM8 3.500v9',
  packets: 'M2.500 4h11M2.500 8h7M2.500 12h9',
  warning: 'M8 2.800 14 13H2zM8 6.500v3M8 11.300v.1',
} as const

export type IconName = keyof typeof shapes

/** A picture beside a text, or in a button that has a label. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)
