import type { ChildProcess } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { ProcessorTime } from '../../os/system/processor-time.ts'
import { lookFunction } from './watchdog.ts'

/** Interval of the checks, ms. */
const checkMs = 200
/** Processor time, ms, after which the process must answer a request; a tenth of it in one interval makes the keeper ask. */
const answerMs = 300
const busyMs = 50
/** Timeout of an idle connection to the inspector, ms. */
const connectionMs = 5000
/** The announcement of the inspector in stderr. Its path is a random UUID that only stderr shows (`--inspect-publish-uid`). */
const announcement = /^Debugger listening on ws:\/\/127\.0\.0\.1:(\d+)(\/\S+)/
const ofInspector = /^(Debugger (listening|attached|ending)|For help, see: https:\/\/nodejs|Waiting for the debugger)/

/** Arguments of a process that a detector watches. */
export const watchedArguments = ['--inspect-port=127.0.0.1:0', '--inspect-publish-uid=stderr']

/**
 * Watches the processor time of the main thread of a process. If the thread is busy and the process does not answer, the detector
 * opens its inspector (SIGUSR1) and has it evaluate the function of the watchdog (watchdog.ts), until the process answers.
 */
export class HangDetector {
  readonly #child: ChildProcess
  readonly #request: () => void
  readonly #checks: NodeJS.Timeout
  readonly #time: ProcessorTime
  #inspector: { readonly port: number; readonly path: string } | undefined
  #socket: Socket | undefined
  #isConnected = false
  #hasAnswered = false
  /** Processor time at the last check, ms. */
  #used = 0
  /** Processor time at the unanswered request, ms. */
  #since: number | undefined

  /** `request` asks the process for an answer; an answered request also closes the inspector. Other lines of stderr are passed on. */
  constructor(child: ChildProcess, pid: number, request: () => void) {
    this.#child = child
    this.#request = request
    // The main thread has the id of the process.
    this.#time = new ProcessorTime(pid, pid)
    let partial = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (partial + text).split('\n')
      partial = lines.pop() ?? ''
      for (const line of lines) this.#readLine(line)
    })
    this.#checks = setInterval(() => this.#check(), checkMs).unref()
    child.once('exit', () => {
      clearInterval(this.#checks)
      this.#time.close()
      this.#socket?.destroy()
    })
  }

  /** To be called when the process sends anything: its event loop runs. */
  heard(): void {
    this.#hasAnswered = true
    this.#since = undefined
    // The process waits for the end of the connection when it closes the inspector.
    this.#socket?.destroy()
  }

  #readLine(line: string): void {
    if (!ofInspector.test(line)) process.stderr.write(`${line}\n`)
    const [, port, path = ''] = announcement.exec(line) ?? []
    if (port === undefined) return
    this.#inspector = { port: Number(port), path }
    if (this.#since === undefined) this.#request()
    else this.#socket ??= this.#connect(this.#inspector)
  }

  #check(): void {
    const used = this.#time.read() ?? this.#used
    if (this.#since === undefined) {
      if (this.#hasAnswered && used - this.#used >= busyMs) {
        this.#since = used
        this.#request()
      }
    } else if (used - this.#since >= answerMs) this.#inspect(used)
    this.#used = used
  }

  #inspect(usedMs: number): void {
    if (this.#isConnected) this.#socket?.write(evaluation(`${lookFunction}(${usedMs})`))
    else if (this.#inspector === undefined) this.#child.kill('SIGUSR1')
    else this.#socket ??= this.#connect(this.#inspector)
  }

  /** Connects as a WebSocket client (RFC 6455, section 4.1). Answers are ignored. */
  #connect({ port, path }: { readonly port: number; readonly path: string }): Socket {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.setTimeout(connectionMs, () => socket.destroy())
    socket.on('data', () => {
      this.#isConnected = true
    })
    socket.on('close', () => {
      if (!this.#isConnected) {
        // This inspector is closed.
        this.#inspector = undefined
        if (this.#since !== undefined) this.#child.kill('SIGUSR1')
      }
      this.#socket = undefined
      this.#isConnected = false
    })
    const key = Buffer.alloc(16).toString('base64')
    const headers = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}`
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${headers}\r\n\r\n`)
    return socket
  }
}

/** A WebSocket text frame of less than 126 bytes (RFC 6455, section 5.2) with a masking key of zeros: `Runtime.evaluate` without result. */
function evaluation(expression: string): Buffer {
  const text = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } })
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
}
