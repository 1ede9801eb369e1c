export { Serial } from '../../src/serial.ts'
