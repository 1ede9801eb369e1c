/**
 * Whether URL parsing leaves the target of a request unchanged. Parsing resolves dot segments and backslashes: the router would see
 * `.../files/..` as the project itself.
 */
export function isPlainTarget(target: string): boolean {
  const [path = ''] = target.split(/[?#]/, 1)
  return !path.includes('\\') && !path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))
}
