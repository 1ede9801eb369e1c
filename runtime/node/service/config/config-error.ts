/** The configuration is not valid; the message says what is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
