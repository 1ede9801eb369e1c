import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeTelnet, greeting, TelnetDecoder, TelnetStripper } from '../../../../runtime/node/os/system/telnet.ts'

const [IAC, DONT, DO, WONT, WILL, SB, AYT, SE, CR, LF] = [255, 254, 253, 252, 251, 250, 246, 240, 13, 10] as const

/** Bytes in which the commands of telnet are as frequent as anything else. */
const byte = fc.oneof(
  fc.constantFrom(IAC, DONT, DO, WONT, WILL, SB, AYT, SE, CR, LF, 0),
  fc.integer({ min: 0, max: 255 }),
)
const bytes = fc.array(byte, { maxLength: 300 }).map((it) => Uint8Array.from(it))

function decode(...pieces: readonly Uint8Array[]): { data: number[]; reply: number[] } {
  const decoder = new TelnetDecoder()
  const parts = pieces.map((piece) => decoder.decode(piece))
  return { data: parts.flatMap(({ data }) => [...data]), reply: parts.flatMap(({ reply }) => [...reply]) }
}

/** Cuts where the numbers say, modulo the length. */
function split(whole: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const ends = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, index) => whole.subarray(from, ends[index] ?? whole.length))
}

test('any split of any byte stream gives the same data and the same replies', () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat()), (whole, cuts) => {
      expect(decode(...split(whole, cuts))).toEqual(decode(whole))
    }),
    { numRuns: 300 },
  )
})

test('input of a client arrives without the telnet commands in it, wherever they are', () => {
  const plain = fc.integer({ min: 0, max: 254 }).filter((it) => it !== CR)
  const item = fc.oneof(
    plain.map((it) => ({ sent: [it], meant: [it] })),
    fc.constantFrom([CR, 0], [CR, LF]).map((sent) => ({ sent, meant: [CR] })),
    fc.constant({ sent: [IAC, IAC], meant: [IAC] }),
    fc.integer({ min: 241, max: 249 }).map((command) => ({ sent: [IAC, command], meant: [] })),
    fc
      .tuple(fc.integer({ min: WILL, max: DONT }), fc.integer({ min: 0, max: 255 }))
      .map(([command, option]) => ({ sent: [IAC, command, option], meant: [] })),
    fc
      .array(fc.integer({ min: 0, max: 254 }), { maxLength: 40 })
      .map((it) => ({ sent: [IAC, SB, ...it, IAC, SE], meant: [] })),
  )
  fc.assert(
    fc.property(fc.array(item), (items) => {
      const { data } = decode(Uint8Array.from(items.flatMap(({ sent }) => sent)))
      expect(data).toEqual(items.flatMap(({ meant }) => meant))
    }),
    { numRuns: 300 },
  )
})

test('CR NUL and CR LF are one CR, a CR by itself stays, and so do NUL and LF', () => {
  expect(decode(Uint8Array.of(CR, 0, CR, LF, CR, CR, LF, 65, LF, 0)).data).toEqual([CR, CR, CR, CR, 65, LF, 0])
})

test('CR is passed on at once, not with the next byte', () => {
  expect(decode(Uint8Array.of(65, CR)).data).toEqual([65, CR])
})

test('two FF are one byte FF', () => {
  expect(decode(Uint8Array.of(1, IAC, IAC, 2)).data).toEqual([1, IAC, 2])
})

test('Are-You-There is answered, and is no data', () => {
  const { data, reply } = decode(Uint8Array.of(65, IAC, AYT, 66))
  expect(data).toEqual([65, 66])
  expect(Buffer.from(reply).toString()).toMatch(/^\r\n.*here.*\r\n$/)
})

test('a sub-negotiation without an end does not block the input for ever', () => {
  const { data } = decode(Uint8Array.of(IAC, SB, 24), new Uint8Array(200).fill(120), Uint8Array.of(111, 107))
  expect(data.length).toBeGreaterThan(100)
  expect(data.slice(-2)).toEqual([111, 107])
})

test('a doubled FF inside a sub-negotiation does not end it', () => {
  expect(decode(Uint8Array.of(IAC, SB, 31, 0, IAC, IAC, 0, 24, IAC, SE, 65)).data).toEqual([65])
})

test('options that were not offered are refused, those of the greeting are accepted without a reply', () => {
  expect(decode(Uint8Array.of(IAC, DO, 33)).reply).toEqual([IAC, WONT, 33])
  expect(decode(Uint8Array.of(IAC, WILL, 24)).reply).toEqual([IAC, DONT, 24])
  expect(decode(Uint8Array.of(IAC, DO, 1, IAC, DO, 3, IAC, DO, 0, IAC, WILL, 0, IAC, WILL, 3)).reply).toEqual([])
})

test('there are no loops: no reply makes the other side reply', () => {
  fc.assert(
    fc.property(bytes, (whole) => {
      const { reply } = decode(whole)
      expect(decode(Uint8Array.from(reply)).reply).toEqual([])
    }),
    { numRuns: 300 },
  )
})

test('output reaches a telnet terminal unchanged, however it is split', () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat()), (output, cuts) => {
      const stripper = new TelnetStripper()
      const sent = Uint8Array.from([...greeting, ...encodeTelnet(output)])
      expect(split(sent, cuts).flatMap((piece) => [...stripper.strip(piece)])).toEqual([...output])
    }),
    { numRuns: 300 },
  )
})

test('every FF of the guest is sent twice, and output without one is not copied', () => {
  expect([...encodeTelnet(Uint8Array.of(IAC, 1, IAC, IAC))]).toEqual([IAC, IAC, 1, IAC, IAC, IAC, IAC])
  const plain = Uint8Array.of(1, 2, 3)
  expect(encodeTelnet(plain)).toBe(plain)
})
