import type { LineType } from '../capture.ts'
import type { PortShape } from './kind.ts'

/** The routers that dynamips emulates, and their default memory, MB. */
export const defaultRam = {
  c1700: 160,
  c2600: 160,
  c2691: 192,
  c3600: 192,
  c3725: 128,
  c3745: 256,
  c7200: 512,
} as const

export type DynamipsPlatform = keyof typeof defaultRam

type Interface = 'Ethernet' | 'FastEthernet' | 'GigabitEthernet' | 'Serial' | 'POS'

/** The interfaces of each card for a slot: their name in IOS, and their number. */
const cards = {
  'C1700-MB-1FE': ['FastEthernet', 1],
  'C1710-MB-1FE-1E': ['FastEthernet', 1],
  'C2600-MB-1E': ['Ethernet', 1],
  'C2600-MB-2E': ['Ethernet', 2],
  'C2600-MB-1FE': ['FastEthernet', 1],
  'C2600-MB-2FE': ['FastEthernet', 2],
  'C7200-IO-FE': ['FastEthernet', 1],
  'C7200-IO-2FE': ['FastEthernet', 2],
  'C7200-IO-GE-E': ['GigabitEthernet', 1],
  'GT96100-FE': ['FastEthernet', 2],
  'Leopard-2FE': ['FastEthernet', 2],
  'NM-1E': ['Ethernet', 1],
  'NM-4E': ['Ethernet', 4],
  'NM-1FE-TX': ['FastEthernet', 1],
  'NM-16ESW': ['FastEthernet', 16],
  'NM-4T': ['Serial', 4],
  'PA-FE-TX': ['FastEthernet', 1],
  'PA-2FE-TX': ['FastEthernet', 2],
  'PA-GE': ['GigabitEthernet', 1],
  'PA-4E': ['Ethernet', 4],
  'PA-8E': ['Ethernet', 8],
  'PA-4T+': ['Serial', 4],
  'PA-8T': ['Serial', 8],
  'PA-POS-OC3': ['POS', 1],
} as const satisfies Record<string, readonly [Interface, number]>
export type Card = keyof typeof cards
export const cardNames = Object.keys(cards) as Card[]

/** The cards for a WIC slot. */
const wics = { 'WIC-1T': ['Serial', 1], 'WIC-2T': ['Serial', 2], 'WIC-1ENET': ['Ethernet', 1] } as const
export type Wic = keyof typeof wics
export const wicNames = Object.keys(wics) as Wic[]

/** The slots of a chassis. */
interface Chassis {
  /** The card that is always in slot 0. */
  readonly fixed?: Card
  /** The choices for slot 0; the first is the default. Absent, as well as `fixed`: the choices are `takes`. */
  readonly first?: readonly Card[]
  /** The number of slots, slot 0 included. */
  readonly slots: number
  /** The choices for the other slots. */
  readonly takes: readonly Card[]
  readonly wicSlots: number
  readonly wics: readonly Wic[]
}

const none = { takes: [], wicSlots: 0, wics: [] } as const
const serialWics = { wicSlots: 3, wics: ['WIC-1T', 'WIC-2T'] } as const
const c1700: Chassis = {
  ...none,
  slots: 1,
  fixed: 'C1700-MB-1FE',
  wicSlots: 2,
  wics: ['WIC-1T', 'WIC-2T', 'WIC-1ENET'],
}
const c2600 = (fixed: Card): Chassis => ({
  ...serialWics,
  fixed,
  slots: 2,
  takes: ['NM-1E', 'NM-4E', 'NM-1FE-TX', 'NM-16ESW'],
})
const c3700 = (slots: number): Chassis => ({
  ...serialWics,
  fixed: 'GT96100-FE',
  slots,
  takes: ['NM-1FE-TX', 'NM-4T', 'NM-16ESW'],
})
const c3600: Chassis = { ...none, slots: 4, takes: ['NM-1E', 'NM-4E', 'NM-1FE-TX', 'NM-16ESW', 'NM-4T'] }
const portAdapters = ['PA-FE-TX', 'PA-2FE-TX', 'PA-GE', 'PA-4E', 'PA-8E', 'PA-4T+', 'PA-8T', 'PA-POS-OC3'] as const
const ioCards = ['C7200-IO-FE', 'C7200-IO-2FE', 'C7200-IO-GE-E'] as const

const defaultChassis: Partial<Record<DynamipsPlatform, string>> = { c1700: '1720', c2600: '2610', c3600: '3640' }
/** By platform and chassis; an empty text is the chassis of a platform that has one only. */
const chassisOf: Readonly<Record<DynamipsPlatform, Readonly<Record<string, Chassis>>>> = {
  c1700: {
    '1720': c1700,
    '1721': c1700,
    '1750': c1700,
    '1751': c1700,
    '1760': c1700,
    '1710': { ...none, slots: 1, fixed: 'C1710-MB-1FE-1E' },
  },
  c2600: {
    '2610': c2600('C2600-MB-1E'),
    '2611': c2600('C2600-MB-2E'),
    '2620': c2600('C2600-MB-1FE'),
    '2621': c2600('C2600-MB-2FE'),
    '2610XM': c2600('C2600-MB-1FE'),
    '2611XM': c2600('C2600-MB-2FE'),
    '2620XM': c2600('C2600-MB-1FE'),
    '2621XM': c2600('C2600-MB-2FE'),
    '2650XM': c2600('C2600-MB-1FE'),
    '2651XM': c2600('C2600-MB-2FE'),
  },
  c2691: { '': c3700(2) },
  c3600: { '3640': c3600, '3620': { ...c3600, slots: 2 }, '3660': { ...c3600, slots: 7, fixed: 'Leopard-2FE' } },
  c3725: { '': c3700(3) },
  c3745: { '': c3700(5) },
  c7200: { '': { ...none, slots: 7, first: ioCards, takes: portAdapters } },
}

export const chassisNames = [
  '',
  ...Object.values(chassisOf).flatMap((of) => Object.keys(of).filter((chassis) => chassis !== '')),
]

export const slotFields = ['slot0', 'slot1', 'slot2', 'slot3', 'slot4', 'slot5', 'slot6'] as const
export const wicFields = ['wic0', 'wic1', 'wic2'] as const

/** The cards of a router; an empty text is an empty slot, or the default of slot 0 and of the chassis. */
export type Hardware = {
  readonly platform: DynamipsPlatform
  readonly chassis: string
} & { readonly [S in (typeof slotFields)[number]]: Card | '' } & {
  readonly [W in (typeof wicFields)[number]]: Wic | ''
}

/** The hardware with its defaults; a text says what is wrong with the hardware, with the name of the field first. */
export function completed(hardware: Hardware): Hardware | string {
  const { platform } = hardware
  const known = chassisOf[platform]
  const chassis = hardware.chassis || (defaultChassis[platform] ?? '')
  const found = known[chassis]
  if (found === undefined)
    return `chassis: expected one of ${listed(Object.keys(known))} for a ${platform}, got ${JSON.stringify(chassis)}`
  const router = chassis === '' ? platform : chassis
  for (const [index, field] of slotFields.entries()) {
    const card = hardware[field]
    if (card === '') continue
    if (index >= found.slots) return `${field}: a ${router} has ${found.slots} slots, numbered from 0`
    const takes = index > 0 ? found.takes : found.fixed === undefined ? (found.first ?? found.takes) : [found.fixed]
    if (!takes.includes(card)) return `${field}: slot ${index} of a ${router} accepts ${listed(takes)}, got ${card}`
  }
  for (const [index, field] of wicFields.entries()) {
    const wic = hardware[field]
    if (wic === '') continue
    if (index >= found.wicSlots) return `${field}: a ${router} has ${found.wicSlots} WIC slots, numbered from 0`
    if (!found.wics.includes(wic)) return `${field}: a ${router} accepts ${listed(found.wics)}, got ${wic}`
  }
  const slot0 = hardware.slot0 === '' ? (found.fixed ?? found.first?.[0] ?? '') : hardware.slot0
  const { slot1, slot2, slot3, slot4, slot5, slot6, wic0, wic1, wic2 } = hardware
  return { platform, chassis, slot0, slot1, slot2, slot3, slot4, slot5, slot6, wic0, wic1, wic2 }
}

const listed = (names: readonly string[]): string => names.join(', ')

/** Whether the card of slot 0 belongs to the chassis. */
export const isFixed = ({ platform, chassis }: Hardware): boolean => chassisOf[platform][chassis]?.fixed !== undefined

/** The number of the first port in a WIC slot: dynamips numbers the WIC slots as sub-slots of slot 0. */
export const firstPortOfWic = (index: number): number => 16 * (index + 1)

const lineOf = (name: Interface): LineType => (name === 'Serial' || name === 'POS' ? 'serial' : 'ethernet')

/** The ports of a router, with their names in IOS. */
export function portsOfRouter(hardware: Hardware): PortShape[] {
  const isShort = hardware.platform === 'c1700'
  const nameOf = (name: Interface, slot: number, number: number) => `${name}${isShort ? number : `${slot}/${number}`}`
  const ports: PortShape[] = slotFields.flatMap((field, adapter) => {
    const [name, count] = cards[hardware[field] as Card] ?? ['Ethernet', 0]
    const line = lineOf(name)
    return Array.from({ length: count }, (_, port) => ({ adapter, port, line, name: nameOf(name, adapter, port) }))
  })
  if (hardware.slot0 === 'C1710-MB-1FE-1E') ports.push({ adapter: 0, port: 1, line: 'ethernet', name: 'Ethernet0' })
  // IOS numbers the interfaces of one type through all WICs.
  const counts: Partial<Record<Interface, number>> = {}
  for (const [index, field] of wicFields.entries()) {
    const [name, count] = wics[hardware[field] as Wic] ?? ['Serial', 0]
    for (let port = 0; port < count; port++) {
      const number = counts[name] ?? 0
      counts[name] = number + 1
      ports.push({ adapter: 0, port: firstPortOfWic(index) + port, line: lineOf(name), name: nameOf(name, 0, number) })
    }
  }
  return ports
}
