import type { LoadedConfig } from './load.ts'

/** The command that starts this service again, with the same labs and settings, where others reach it. */
export function startLine(config: LoadedConfig, port: number): string {
  const { data } = config.current
  const isDefault = config.effective().find(({ key }) => key === 'data')?.source === 'default'
  const parts = [
    ...['patchbay', 'serve', '--host', '0.0.0.0', '--port', String(port)],
    ...(isDefault ? [] : ['--data', data]),
    ...(config.namedFile === undefined ? [] : ['--config', config.namedFile]),
  ]
  return parts.map(quoted).join(' ')
}

/** As a shell takes it for one word. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
