import { writeSync } from 'node:fs'
import { loadLibc } from '../../os/system/libc.ts'
import { limitFiles } from './limit-files.ts'
import { type NatConfig, NatNetwork } from './network.ts'

/** The process of a nat. Only signals end it, as its thread blocks in system calls. */
const [text = '{}'] = process.argv.slice(2)
try {
  limitFiles()
  const network = new NatNetwork(loadLibc(), JSON.parse(text) as NatConfig)
  writeSync(1, 'the nat was ready\n')
  network.run()
} catch (error) {
  // A start recognizes this text, and tries other ports.
  const isTaken = (error as { code?: unknown }).code === 'port_taken'
  process.stderr.write(`${isTaken ? 'Address already in use: ' : ''}${(error as Error).message}\n`)
  process.exit(1)
}
