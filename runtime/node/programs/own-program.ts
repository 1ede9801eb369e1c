import { fileURLToPath } from 'node:url'

/**
 * Arguments with which Node runs another program of ours: the source in a checkout, the bundle beside us when built. Where
 * Node does not take TypeScript by itself, whatever made it take ours is handed on.
 */
export function programArguments(source: URL, bundle: URL): string[] {
  if (!import.meta.url.endsWith('.ts')) return [fileURLToPath(bundle)]
  const takesTypeScript = (process.features as { typescript?: unknown }).typescript === 'strip'
  return [...(takesTypeScript ? [] : process.execArgv), fileURLToPath(source)]
}
