import { writeSync } from 'node:fs'
import { loadLibc } from '../../system/libc.ts'
import { limitFiles } from './limit-files.ts'
import { type NatConfig, NatNetwork } from './network.ts'

/** The process of a nat. It ends by signals alone: its thread sleeps in system calls. */
const [text = '{}'] = process.argv.slice(2)
try {
  limitFiles()
  const network = new NatNetwork(loadLibc(), JSON.parse(text) as NatConfig)
  writeSync(1, 'the nat was ready\n')
  network.run()
} catch (error) {
  // In the words of programs, which a start with other ports follows.
  const isTaken = (error as { code?: unknown }).code === 'port_taken'
  process.stderr.write(`${isTaken ? 'Address already in use: ' : ''}${(error as Error).message}\n`)
  process.exit(1)
}
