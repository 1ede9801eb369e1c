import type { TargetedEvent } from 'preact'
import { IconButton } from '../parts/icon-button.tsx'
import { type FormField, nextRow, type TableRow, textOf, withCell } from './fields.ts'

/** Rows that are shown; more of them are edited as JSON. */
const maxRows = 64
/** Columns that fit beside each other in a panel; the fields of wider rows are below each other, too. */
const mostColumns = 4

type Table = Extract<FormField, { kind: 'table' }>

const rowsIn = (text: string): readonly TableRow[] => (text === '' ? [] : (JSON.parse(text) as TableRow[]))

/** Whether the rows of a text can be shown as a table. */
export const hasFewRows = (text: string): boolean => rowsIn(text).length <= maxRows

interface TableProps {
  readonly field: Table
  /** Its rows as JSON. */
  readonly text: string
  readonly isDisabled: boolean
  readonly onType: (text: string) => void
}

/** A list of objects, one per row. */
export function TableField({ field: { name, title, description, columns }, text, isDisabled, onType }: TableProps) {
  const rows = rowsIn(text)
  const give = (next: readonly TableRow[]) => onType(JSON.stringify(next))
  const cell = (column: FormField, row: TableRow, index: number) => (
    <Cell
      {...{ column, row }}
      label={`${column.title} of row ${index + 1}`}
      id={`field-${name}-${index}-${column.name}`}
      onType={(typed) => give(rows.with(index, withCell(row, column, typed)))}
    />
  )
  const remove = (index: number) =>
    !isDisabled && (
      <IconButton icon="close" title={`Remove row ${index + 1}`} onClick={() => give(rows.toSpliced(index, 1))} />
    )
  return (
    <fieldset class="field table-field" disabled={isDisabled}>
      <legend title={description}>{title}</legend>
      {columns.length > mostColumns ? (
        <ul>
          {rows.map((row, index) => (
            <li key={index}>
              {columns.map((column) => (
                <div key={column.name} title={column.description}>
                  {column.title}
                  {cell(column, row, index)}
                </div>
              ))}
              {remove(index)}
            </li>
          ))}
        </ul>
      ) : (
        <table>
          <thead>
            <tr>
              {columns.map((it) => (
                <th key={it.name} title={it.description}>
                  {shortTitle(it)}
                </th>
              ))}
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {columns.map((column) => (
                  <td key={column.name}>{cell(column, row, index)}</td>
                ))}
                <td>{remove(index)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {!isDisabled && rows.length < maxRows && (
        <button type="button" onClick={() => give([...rows, nextRow(rows, columns)])}>
          Add a row
        </button>
      )}
    </fieldset>
  )
}

/** The title of a narrow column: `Port number` -> `Number`. */
const shortTitle = ({ title }: FormField): string => {
  const word = title.slice(title.lastIndexOf(' ') + 1)
  return word.charAt(0).toUpperCase() + word.slice(1)
}

interface CellProps {
  readonly column: FormField
  readonly row: TableRow
  readonly label: string
  readonly id: string
  readonly onType: (text: string) => void
}

function Cell({ column, row, label, id, onType }: CellProps) {
  const common = { id, 'aria-label': label, required: column.isRequired, value: textOf(column, row[column.name]) }
  if (column.kind === 'choice')
    return (
      <select {...common} onChange={(event) => onType(event.currentTarget.value)}>
        {!column.options.some((it) => it === row[column.name]) && <option value="" />}
        {column.options.map((it) => (
          <option key={it} value={String(it)}>
            {it === '' ? '–' : it}
          </option>
        ))}
      </select>
    )
  const onInput = (event: TargetedEvent<HTMLInputElement>) => onType(event.currentTarget.value)
  return column.kind === 'number' ? (
    <input {...common} type="number" min={column.minimum} max={column.maximum} onInput={onInput} />
  ) : (
    <input {...common} type="text" spellcheck={false} onInput={onInput} />
  )
}
