/** The id of a tab: that of a node or a link, with the name of another console of the node. */
export const tabOf = (node: string, console: string | undefined): string =>
  console === undefined ? node : `${node}/${console}`

/** The id of the node or link of a tab, and the name of its console. */
export const partsOf = (tab: string): [id: string, console?: string] => tab.split('/') as [string, string?]
