/** Most columns, and most rows, of the terminal of a console. By itself, as the page has no use for the schemas. */
export const mostCells = 1000
