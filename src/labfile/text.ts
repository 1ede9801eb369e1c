import { Document, isCollection, isMap, isPair, isScalar, visit } from 'yaml'

/** Keys of a node, a segment, a template, a check or a task. */
export type Fields = Record<string, unknown>

/** A lab file as data, in the grammar of docs/lab-file.md. */
export interface LabFileData {
  readonly lab: string
  readonly version: 1
  readonly about?: string
  readonly compute?: string
  readonly templates?: Readonly<Record<string, Fields>>
  readonly nodes: Readonly<Record<string, Fields>>
  readonly segments?: Readonly<Record<string, Fields>>
  readonly management?: Fields
  readonly links?: readonly unknown[]
  readonly starting?: Fields
  readonly checks?: readonly Fields[]
  readonly tasks?: readonly Fields[]
}

/** The longest line of a flow collection. */
const lineWidth = 120

/** A lab file as text: a line for each node, segment and link that fits into one. `comments` are lines before it. */
export const labFileText = (file: LabFileData, comments: readonly string[] = []): string => yamlText(file, comments)

/** A document of sections, in the form of a lab file. */
export function yamlText(sections: object, comments: readonly string[]): string {
  const document = new Document(sections, { version: '1.2', compat: 'yaml-1.1', aliasDuplicateObjects: false })
  visit(document, {
    Scalar: (key, node) => {
      if (typeof node.value !== 'string') return
      if (!fitsBlock(node.value) || notPlainElsewhere.test(node.value)) node.type = 'QUOTE_DOUBLE'
      else if (key !== 'key' && node.value.includes('\n')) node.type = 'BLOCK_LITERAL'
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
  const head = comments.map((line) => `# ${line.replaceAll(controls, ' ')}\n`).join('')
  return head + document.toString({ lineWidth: 0 })
}

/** Texts that other readers of YAML refuse without quotes within `{ }`, such as `:/symbols/nat.svg`. */
const notPlainElsewhere = /^(?:[:?-].*|.*\?.*|=)$/
const controls = /\p{Cc}|[\u2028\u2029]/gu
/** Texts that only double quotes keep as they are: a block would lose carriage returns, or break at other line ends. */
const unsafe = /[^\P{Cc}\n]|[\u2028\u2029\ufeff\ufffe\uffff]|\p{Cs}/u

/** Texts of several lines whose blanks a block may lose, or a reader overlook. */
const blanks = /^\s[\s\S]*\n|^\n|[ \t]\n|\n[ \t]+$/

/** Whether a block keeps a text as it is, and a reader sees all of it. */
export const fitsBlock = (text: string): boolean => !unsafe.test(text) && !blanks.test(text)

/** Whether a value is one line of a flow collection: JSON of it is a little longer than YAML. */
const isShort = (value: unknown): boolean => {
  const text = JSON.stringify(value)
  return text.length <= lineWidth && !text.includes('\\n')
}
