/**
 * Whether URL parsing leaves the target of a request unchanged. Parsing resolves dot segments and backslashes: the router would see
 * `.../files/..` as the project itself.
 */
export function isPlainTarget(target: string): boolean {
  const end = target.search(/[?#]/)
  return !unplain.test(end < 0 ? target : target.slice(0, end))
}

/** A backslash, or a segment of one or two dots, also percent-encoded. */
const unplain = /\\|(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i
