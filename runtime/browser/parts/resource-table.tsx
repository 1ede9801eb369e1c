import type { ComponentChildren } from 'preact'

interface ResourceTableProps {
  readonly caption?: string
  readonly columns: readonly string[]
  /** Whether a last column has buttons. */
  readonly hasActions?: boolean
  /** The rows. */
  readonly children: ComponentChildren
}

/** A table of resources. */
export const ResourceTable = ({ caption, columns, hasActions = false, children }: ResourceTableProps) => (
  <table>
    {caption !== undefined && <caption>{caption}</caption>}
    <thead>
      <tr>
        {columns.map((column) => (
          <th scope="col" key={column}>
            {column}
          </th>
        ))}
        {hasActions && (
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        )}
      </tr>
    </thead>
    <tbody>{children}</tbody>
  </table>
)
