import type { Switch } from '../../dataplane/switch/switch.ts'
import { KeeperError } from '../protocol/error.ts'
import type { BridgeSpec } from '../protocol/protocol.ts'
import type { InputTaken } from './input-window.ts'
import type { Runner, UnitEnd } from './runner.ts'

/** A switch or a hub: nothing but its part of the packet path. */
export class BridgeRunner implements Runner {
  readonly pid = 0
  readonly ended: Promise<UnitEnd>
  readonly #key: string
  readonly #packetSwitch: Switch
  #end: (end: UnitEnd) => void = () => {}

  private constructor(key: string, lan: Switch) {
    this.#key = key
    this.#packetSwitch = lan
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  static async start(key: string, spec: BridgeSpec, lan: Switch): Promise<BridgeRunner> {
    await lan.configure(key, spec)
    return new BridgeRunner(key, lan)
  }

  configure(spec: BridgeSpec): Promise<void> {
    return this.#packetSwitch.configure(this.#key, spec)
  }

  input(): InputTaken {
    return { isTaken: true }
  }

  hold(): void {
    throw new KeeperError('unsupported', 'a switch cannot be held')
  }

  limit(): void {
    throw new KeeperError('unsupported', 'the processor time of a switch cannot be limited')
  }

  async stop(): Promise<UnitEnd> {
    await this.#packetSwitch.configure(this.#key, null)
    this.#end({ code: 0, signal: null })
    return this.ended
  }
}
