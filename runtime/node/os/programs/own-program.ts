import { fileURLToPath } from 'node:url'

/**
 * Arguments with which Node runs another Patchbay program: the source in a checkout, the bundle after a build. The loader options
 * for TypeScript are inherited.
 */
export function programArguments(source: URL, bundle: URL): string[] {
  if (!import.meta.url.endsWith('.ts')) return [fileURLToPath(bundle)]
  const takesTypeScript = (process.features as { typescript?: unknown }).typescript === 'strip'
  return [...(takesTypeScript ? [] : process.execArgv), fileURLToPath(source)]
}
