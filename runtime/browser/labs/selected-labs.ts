/** The labs that are selected and shown: what the search hides is left alone. In the order in which they are shown. */
export const selectedLabs = <T extends { readonly project_id: string }>(
  labs: readonly T[],
  chosen: ReadonlySet<string>,
  shown: readonly string[],
): T[] => shown.filter((id) => chosen.has(id)).flatMap((id) => labs.find(({ project_id }) => project_id === id) ?? [])
