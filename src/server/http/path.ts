/** The part of a path before the name of a file or an image. */
const namesOfFiles = /^(\/v1\/[^/]+\/vms|.*?\/(?:files|images))\//
/** The beginning of a path up to the id of a compute, which may be any word. */
const idOfCompute = /^\/v2\/computes\/(?:endpoint\/)?[^/]+/

/** Replaces clients' words for kinds by ours, but not in the names of files and computes. */
export function unalias(path: string, aliases: Readonly<Record<string, string>>): string {
  for (const alias in aliases) {
    if (!path.includes(`/${alias}`)) continue
    const kept = idOfCompute.exec(path)?.[0] ?? ''
    const head = namesOfFiles.exec(path)?.[1] ?? path
    const ours = head
      .slice(kept.length)
      .split('/')
      .map((word) => (Object.hasOwn(aliases, word) ? (aliases[word] ?? word) : word))
    return kept + ours.join('/') + path.slice(head.length)
  }
  return path
}

/** The path of a URL, unparsed: `new URL` would resolve `..` and unify spellings. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  const end = url.slice(start).search(/[?#]/)
  return end < 0 ? url.slice(start) : url.slice(start, start + end)
}

export function queryOf(url: string): Record<string, string> {
  const start = url.indexOf('?')
  return start < 0 ? {} : Object.fromEntries(new URLSearchParams(url.slice(start)))
}
