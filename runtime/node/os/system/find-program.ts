import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, resolve } from 'node:path'

/** The path of an executable regular file: as it is when it has a slash, else from PATH. */
export function findProgram(name: string, path = process.env.PATH ?? ''): string | undefined {
  if (isAbsolute(name) || name.includes('/')) return isProgram(resolve(name)) ? resolve(name) : undefined
  return path
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, name))
    .find(isProgram)
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
