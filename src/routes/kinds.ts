import type { NodeKindName } from '../model/node.ts'

/** What the endpoints of a kind say of it, the same in both faces. */
export interface KindFacts {
  /** A node of the kind, within a sentence. */
  readonly noun: string
  /** Whether its nodes can be paused. */
  readonly canBePaused: boolean
  /** Whether they can be reset; absent: as they can be paused. Else a reload is a stop and a start. */
  readonly canBeReset?: boolean
  /** What the console of a node may be. */
  readonly consoles: readonly ('text' | 'screen')[]
  /** Whether a start of what runs (v1), a resume of what is not paused and a reset of what is stopped are refused. */
  readonly isStrict?: boolean
  /** Whether start answers with the node in v2. */
  readonly startShows?: boolean
  /** Whether a node can be made a copy of another one. */
  readonly canBeCopied?: boolean
  /** What 409 means. */
  readonly conflicts: Readonly<Record<'create' | 'update' | 'start', string>>
}

const machineNeeds = 'the emulator or an image is missing (its name is then in `image`)'

export const kindFacts: Readonly<Record<NodeKindName, KindFacts>> = {
  pc: {
    noun: 'pc',
    canBePaused: true,
    canBeReset: false,
    consoles: ['text'],
    conflicts: {
      create: 'no port or pc id is left',
      update: 'The change is not possible now',
      start: 'The pc cannot run now; the message says why',
    },
  },
  iou: {
    noun: 'router',
    canBePaused: false,
    consoles: ['text'],
    conflicts: {
      create: 'no port or application id is left, or the image is missing (its name is then in `image`)',
      update: 'The change is not possible now, or the image is missing (its name is then in `image`)',
      start: 'The router cannot run now: its image, the licence file or a library is missing; the message says what',
    },
  },
  hypervisor: {
    noun: 'VM',
    canBePaused: true,
    consoles: ['text', 'screen'],
    startShows: false,
    isStrict: true,
    canBeCopied: false,
    conflicts: {
      create: 'the hypervisor cannot be reached or has no such VM, another node has the VM, or no port is left',
      update: 'The change is not possible now, or the hypervisor has no such VM',
      start: 'The VM cannot run now, or was started by somebody else; the message says why',
    },
  },
  'machine-emulator': {
    noun: 'machine',
    canBePaused: true,
    consoles: ['text', 'screen'],
    conflicts: {
      create: `no port is left, another machine uses an image as its own, or ${machineNeeds}`,
      update: `The change is not possible now, another machine uses an image as its own, or ${machineNeeds}`,
      start: `The machine cannot run now, and the message says why; or ${machineNeeds}`,
    },
  },
  dynamips: {
    noun: 'router',
    canBePaused: true,
    consoles: [],
    conflicts: {
      create: 'the image is missing (its name is then in `image`) or is no IOS image',
      update: 'The router is being measured, or the image is missing (its name is then in `image`) or is no IOS image',
      start:
        'The router cannot run now, and the message says why; or its image is missing (its name is then in `image`)',
    },
  },
}
