import { wellFormed } from '../../../src/lib/text/escape.ts'
import { symbolShapes } from '../../../src/model/lab/symbol-shapes.ts'

/** The built-in symbols, for `<use>`: their colours are those of the theme. The shapes are texts of this program, not of users. */
export const SymbolDefinitions = () => (
  <svg class="symbol-definitions" aria-hidden="true">
    <defs>
      {Object.entries(symbolShapes).map(([id, shape]) => (
        <g key={id} id={`symbol-${id}`} dangerouslySetInnerHTML={{ __html: shape }} />
      ))}
    </defs>
  </svg>
)

/** Whether a symbol is built in; the service has the picture of any other. */
export const isBuiltIn = (name: string): boolean => Object.hasOwn(symbolShapes, name)

/** The address of the picture of a symbol. */
export const symbolUrl = (name: string): string => `/v2/symbols/${encodeURIComponent(wellFormed(name))}/raw`

/** The picture of a symbol beside a text. */
export const SymbolPicture = ({ name }: { name: string }) =>
  isBuiltIn(name) ? (
    <svg class="symbol" viewBox="0 0 60 60" aria-hidden="true">
      <use href={`#symbol-${name}`} />
    </svg>
  ) : (
    <img class="symbol" alt="" src={symbolUrl(name)} />
  )
