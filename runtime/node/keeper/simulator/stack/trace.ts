import type { IpTarget, Net } from './net.ts'
import { describe } from './ping.ts'

const firstPort = 33_434
const probes = 3
const waitMs = 1000

/** Shows a line for every hop: UDP probes with a growing TTL, and the senders of the ICMP errors. */
export async function trace(
  net: Net,
  target: IpTarget,
  maxHops: number,
  show: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  show(`trace to ${target.text}, ${maxHops} hops max, press Ctrl+C to stop\r\n`)
  let port = firstPort
  for (let ttl = 1; ttl <= maxHops && !signal.aborted; ttl++) {
    let text = ''
    let isThere = false
    for (let probe = 0; probe < probes && !signal.aborted; probe++) {
      port += 1
      const answer = await probeOnce(net, target, port, ttl, signal)
      if (typeof answer === 'string') {
        show(` ${answer}\r\n`)
        return
      }
      if (answer === undefined) text += '  *'
      else {
        isThere = answer.from === target.text
        const name = text.includes(answer.from) ? '' : isThere ? `*${answer.from}` : answer.from
        text += `${name === '' ? '' : ` ${name}`}  ${answer.time} ms`
        if (isThere) {
          text += ` (${describe(answer)})`
          break
        }
      }
    }
    if (signal.aborted) return
    show(`${String(ttl).padStart(2)}  ${text.trimStart()}\r\n`)
    if (isThere) return
  }
}

async function probeOnce(net: Net, target: IpTarget, port: number, ttl: number, signal: AbortSignal) {
  const source = net.openPort()
  const began = performance.now()
  try {
    const send = () => net.to(target).udp(source.port, port, new Uint8Array(32), { ttl })
    const { refusal, answer } = await net.ask(send, waitMs, signal, (event) =>
      event.type === 'error' && event.id === source.port && event.sequence === port
        ? { from: event.from, time: (performance.now() - began).toFixed(3), icmpType: event.icmpType, code: event.code }
        : undefined,
    )
    return refusal === undefined ? answer : `host (${target.text}) ${refusal}`
  } finally {
    source.close()
  }
}
