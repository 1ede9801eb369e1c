import type { LoadedConfig } from './config/load.ts'

// What the commands need of the service, in a bundle of its own: the commands that ask a service load nothing of it.

/** `patchbay serve`: runs until a signal ends it. */
export async function serve(argv: readonly string[]): Promise<number> {
  const config = await configOf(argv)
  return (await import('./serve.ts')).serve(config)
}

/** The settings in force: flags, environment, file, defaults. ConfigError. */
export async function configOf(argv: readonly string[], env = process.env): Promise<LoadedConfig> {
  const { loadConfig } = await import('./config/load.ts')
  return loadConfig({ argv, env })
}

export const doctor = async (argv: readonly string[]): Promise<number> =>
  (await import('./cli/doctor.ts')).doctorCommand(argv)

export const config = async (argv: readonly string[]): Promise<number> =>
  (await import('./cli/config.ts')).configCommand(argv)

/** Every setting as a flag, with its meaning and its default. */
export const settingFlags = async (): Promise<string> => (await import('./cli/setting-flags.ts')).settingFlags()
