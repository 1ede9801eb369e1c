import { useMemo } from 'preact/hooks'
import type { LabDrawing, LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { symbolShapes } from '../../../src/model/lab/symbol-shapes.ts'
import { themeColours } from '../parts/theme-colours.ts'
import { isDark } from '../state/theme.ts'
import { mapSvg } from './map-svg.ts'

/** About the size of a thumbnail, pixels: pictures have any size. */
const shownAt = { width: 300, height: 110 }

/** What a map shows. */
export interface LabMap {
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
  readonly drawings: readonly LabDrawing[]
}

interface MapPictureProps {
  /** Absent: it is not known yet, and there is no picture. */
  readonly map: LabMap | undefined
  /** Whether it shows what runs, and where frames pass. */
  readonly hasStates: boolean
}

/** A small picture of a map, for a `thumbnail`: what it shows is also said beside it. */
export function MapPicture({ map, hasStates }: MapPictureProps) {
  // Pictures do not follow the theme by themselves.
  const isDarkNow = isDark.value
  const picture = useMemo(() => map && pictureOf(map, hasStates), [map, isDarkNow])
  return picture === undefined ? null : <img src={picture} alt="" />
}

function pictureOf(map: LabMap, hasStates: boolean): string {
  const { of: colour, end } = themeColours()
  const svg = mapSvg({
    ...map,
    title: '',
    hasPortNames: false,
    hasStates,
    shownAt,
    symbolOf,
    symbols: new Map(),
    colour,
  })
  end()
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}

/** A built-in symbol: that of the node, or else of its kind. */
const symbolOf = ({ symbol, node_type }: LabNode): string =>
  [symbol, node_type].find((it) => it !== null && Object.hasOwn(symbolShapes, it)) ?? 'machine'
