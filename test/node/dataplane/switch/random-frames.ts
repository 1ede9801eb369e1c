/** The same numbers for the same seed, so that a failure can be seen again. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** From 0 to the limit, which is left out. */
  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * limit)
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0]
  }

  bytes(count: number): number[] {
    return Array.from({ length: count }, () => this.below(256))
  }
}

const ports = [22, 53, 80, 443, 1000, 1500, 2000, 65_535] as const
const hosts = [1, 2, 3] as const

/** A frame such as a lab sees, or a broken one: few addresses and ports, so that filters often match. */
export function randomFrame(random: Random): Uint8Array {
  if (random.below(20) === 0) return Uint8Array.from(random.bytes(random.below(200)))
  const whole = Uint8Array.from([...mac(random), ...mac(random), ...tags(random), ...payload(random)])
  return random.below(8) === 0 ? whole.subarray(0, random.below(whole.length)) : whole
}

const half = (value: number) => [value >> 8, value & 255]

const mac = (random: Random) =>
  random.below(10) === 0 ? [255, 255, 255, 255, 255, 255] : [2, 0, 0, 0, 0, random.pick(hosts)]

const tags = (random: Random) => (random.below(5) === 0 ? [0x81, 0x00, 0, random.pick([7, 8])] : [])

function payload(random: Random): number[] {
  switch (random.below(6)) {
    case 0:
      return [
        0x08,
        0x06,
        0,
        1,
        8,
        0,
        6,
        4,
        0,
        1 + random.below(2),
        ...mac(random),
        ...address(random),
        ...mac(random),
        ...address(random),
      ]
    case 1:
    case 2:
      return [0x86, 0xdd, ...ipv6(random)]
    default:
      return [0x08, 0x00, ...ipv4(random)]
  }
}

const address = (random: Random) => [10, 0, random.pick([0, 1]), random.pick(hosts)]

function ipv4(random: Random): number[] {
  const options = random.below(4) === 0 ? random.bytes(4 * (1 + random.below(3))) : []
  const protocol = random.pick([1, 6, 17, 17, 47])
  const fragment = random.below(8) === 0 ? random.bytes(2) : [0x40, 0]
  const data = segment(random, protocol)
  const length = 20 + options.length + data.length
  const ttl = 1 + random.below(64)
  const first = 0x45 + options.length / 4
  return [
    first,
    0,
    ...half(length),
    ...random.bytes(2),
    ...fragment,
    ttl,
    protocol,
    0,
    0,
    ...address(random),
    ...address(random),
    ...options,
    ...data,
  ]
}

function ipv6(random: Random): number[] {
  const protocol = random.pick([58, 6, 17])
  const data = segment(random, protocol)
  const end = () => [0xfe, 0x80, ...Array.from({ length: 13 }, () => 0), random.pick(hosts)]
  return [0x60, 0, 0, 0, ...half(data.length), protocol, 64, ...end(), ...end(), ...data]
}

function segment(random: Random, protocol: number): number[] {
  const data = random.bytes(random.below(60))
  const pair = [...half(random.pick(ports)), ...half(random.pick(ports))]
  if (protocol === 17) return [...pair, ...half(8 + data.length), 0, 0, ...data]
  if (protocol === 6) return [...pair, ...random.bytes(8), 0x50, random.below(64), ...random.bytes(6), ...data]
  return [random.pick([0, 8, 3, 128, 135]), 0, ...data]
}
