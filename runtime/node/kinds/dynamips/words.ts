import { endOfChildLog } from '../../keeper/child-log.ts'

const maxBytes = 4096

/** The end of what a program wrote, as it may be shown: printable, and without the path of its directory. */
export async function lastOutput(log: string, directory: string): Promise<string> {
  const text = (await endOfChildLog(log, 0, maxBytes)).toString('latin1')
  const lines = text.replaceAll(`${directory}/`, '').replaceAll(directory, '').split(/\r?\n/)
  const said = lines.map((line) => line.replace(/[^\x20-\x7e]/g, ' ').trim()).filter((line) => line !== '')
  return said.slice(-2).join('; ').slice(-300)
}
