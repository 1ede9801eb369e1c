import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** What tshark reads in a capture: the fields of every frame, or of those that a display filter lets through. */
export async function tshark(
  file: string,
  fields: readonly string[],
  filter = '',
  more: readonly string[] = [],
): Promise<string[][]> {
  const args = ['-r', file, ...more, '-T', 'fields', ...fields.flatMap((field) => ['-e', field]), '-Y', filter]
  const { stdout } = await promisify(execFile)('tshark', args)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t'))
}
