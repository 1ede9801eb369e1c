import type { NodeKindName } from '../model/node.ts'

/** What the endpoints of a kind say of it, the same in both faces. */
export interface KindFacts {
  /** A node of the kind, within a sentence. */
  readonly noun: string
  /** Whether its nodes can be paused and reset; else they are only started and stopped. */
  readonly canBePaused: boolean
  /** Whether the console of a node may be a screen. */
  readonly hasScreen: boolean
  /** What 409 means. */
  readonly conflicts: Readonly<Record<'create' | 'update' | 'start', string>>
}

const machineNeeds = 'the emulator or an image is missing (its name is then in `image`)'

export const kindFacts: Readonly<Record<NodeKindName, KindFacts>> = {
  pc: {
    noun: 'pc',
    canBePaused: false,
    hasScreen: false,
    conflicts: {
      create: 'no port or pc id is left',
      update: 'The change is not possible now',
      start: 'The pc cannot run now; the message says why',
    },
  },
  iou: {
    noun: 'router',
    canBePaused: false,
    hasScreen: false,
    conflicts: {
      create: 'no port or application id is left, or the image is missing (its name is then in `image`)',
      update: 'The change is not possible now, or the image is missing (its name is then in `image`)',
      start: 'The router cannot run now: its image, the licence file or a library is missing; the message says what',
    },
  },
  'machine-emulator': {
    noun: 'machine',
    canBePaused: true,
    hasScreen: true,
    conflicts: {
      create: `no port is left, another machine uses an image as its own, or ${machineNeeds}`,
      update: `The change is not possible now, another machine uses an image as its own, or ${machineNeeds}`,
      start: `The machine cannot run now, and the message says why; or ${machineNeeds}`,
    },
  },
}
