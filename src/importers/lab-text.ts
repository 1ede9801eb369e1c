import { Document, isCollection, isMap, isPair, isScalar, visit } from 'yaml'
import type { LabFileData } from './draft.ts'

/** The longest line of a flow collection. */
const lineWidth = 120

/** A lab file as text: a line for each node, segment and link that fits into one. */
export function labText(file: LabFileData): string {
  const document = new Document(file)
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value.includes('\n')) node.type = 'BLOCK_LITERAL'
    },
    Collection(_, node, path) {
      // `lab`, `nodes` and what is in them are blocks.
      const depth = path.filter(isCollection).length
      if (depth >= 2 && isShort(node.toJSON())) node.flow = true
    },
    Pair(_, pair, path) {
      const isSection = path.filter((it) => isPair(it)).length === 0 && isMap(path.at(-1))
      if (isSection && isScalar(pair.key) && isCollection(pair.value)) pair.key.spaceBefore = true
    },
  })
  return document.toString({ lineWidth: 0 })
}

/** Whether a value is one line of a flow collection: JSON of it is a little longer than YAML. */
const isShort = (value: unknown): boolean => {
  const text = JSON.stringify(value)
  return text.length <= lineWidth && !text.includes('\\n')
}
