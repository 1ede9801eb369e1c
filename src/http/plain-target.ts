/**
 * Whether the target of a request names what it seems to: URL parsing folds dot segments and backslashes, so that
 * `.../files/..` would be the project itself by the time a route is looked for.
 */
export function isPlainTarget(target: string): boolean {
  const [path = ''] = target.split(/[?#]/, 1)
  return !path.includes('\\') && !path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))
}
