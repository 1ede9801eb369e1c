import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Wireshark takes each frame for itself, and names no addresses. */
export const alone = [
  '-n',
  ...['tcp.relative_sequence_numbers', 'tcp.analyze_sequence_numbers', 'tcp.desegment_tcp_streams'],
  ...['ip.defragment', 'ipv6.defragment'],
].flatMap((it) => (it === '-n' ? [it] : ['-o', `${it}:FALSE`]))

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
