import { expect, test } from 'vitest'
import { parseMac } from '../../../../runtime/node/keeper/simulator/stack/address.ts'
import { Net, parseTarget } from '../../../../runtime/node/keeper/simulator/stack/net.ts'
import { answerTcp, tcpFlag } from '../../../../runtime/node/keeper/simulator/stack/transport.ts'
import { ip } from './server.ts'
import { TestPc, Wire } from './wire.ts'

/** What the echo port of a pc answers to a datagram from a port. */
async function echoed(host: string, sourcePort: number): Promise<string | undefined> {
  const wire = new Wire()
  await TestPc.boot(wire, 1, 'ip 10.0.0.1/24')
  const peer: Net = new Net(
    parseMac('02:00:00:00:00:09'),
    wire.join((frame) => peer.receive(frame)),
  )
  peer.ip4.config = { address: ip('10.0.0.9'), prefix: 24, gateway: 0 }
  // It only listens: an echo port of its own would answer for ever.
  peer.openPort(sourcePort)
  const target = parseTarget(host)
  if (target === undefined) throw new Error(`no address: ${host}`)
  const send = () => peer.to(target).udp(sourcePort, 7, new TextEncoder().encode('hello'))
  const { refusal, answer } = await peer.ask(send, 100, new AbortController().signal, (event) =>
    event.type === 'udp' && event.datagram.destinationPort === sourcePort ? event.datagram.data.slice() : undefined,
  )
  expect(refusal).toBeUndefined()
  return answer && new TextDecoder().decode(answer)
}

test.for(['10.0.0.1', 'fe80::250:79ff:fe66:6801'])('the echo port of %s does not answer another one', async (host) => {
  expect(await echoed(host, 5000)).toBe('hello')
  expect(await echoed(host, 7)).toBeUndefined()
})

test('a connection between echo ports is refused, and the refusal is not answered', () => {
  const data = new TextEncoder().encode('hello')
  const segment = { sourcePort: 5000, destinationPort: 7, sequence: 1, acknowledged: 1, flags: tcpFlag.ack, data }
  expect(answerTcp(segment, 7)?.data).toEqual(data)
  const refusal = answerTcp({ ...segment, sourcePort: 7 }, 7)
  expect(refusal).toMatchObject({ flags: tcpFlag.rst | tcpFlag.ack, data: new Uint8Array(0) })
  expect(refusal && answerTcp(refusal, 7)).toBeUndefined()
})
