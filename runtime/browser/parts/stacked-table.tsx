import type { ComponentChildren } from 'preact'
import { ResourceTable } from './resource-table.tsx'

interface StackedTableProps {
  readonly columns: readonly string[]
  readonly rows: readonly {
    readonly key: string
    /** One a column. */
    readonly cells: readonly ComponentChildren[]
    /** Its buttons. */
    readonly actions: ComponentChildren
  }[]
}

/** A table of resources, whose cells are below each other on a phone. */
export const StackedTable = ({ columns, rows }: StackedTableProps) => (
  <ResourceTable columns={columns} hasActions>
    {rows.map(({ key, cells, actions }) => (
      <tr key={key} class="stacked">
        {cells.map((cell, index) => (
          <td key={columns[index]} data-column={columns[index]}>
            {cell}
          </td>
        ))}
        <td class="actions">{actions}</td>
      </tr>
    ))}
  </ResourceTable>
)
