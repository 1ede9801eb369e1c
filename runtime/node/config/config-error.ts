/** A configuration that cannot be used; the message is for the person who wrote it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
