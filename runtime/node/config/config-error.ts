/** The configuration is not valid; the message tells its author what is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
