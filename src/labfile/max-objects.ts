/** Most nodes, segments and links of a lab by default. */
export const defaultMaxObjects = 10_000
