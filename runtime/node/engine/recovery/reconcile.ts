import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import type { EngineNode } from '../nodes/engine-node.ts'
import { keeperDiedReason } from '../nodes/lifecycle.ts'
import type { Adoption } from './adopt.ts'
import { byUnit, type Inventories, type Run } from './inventories.ts'
import { type RecoveryOptions, warn } from './options.ts'
import { orphanGraceMs, type Reaper } from './reap.ts'

/** Delay before another inventory after a failed one, ms. */
const retryMs = 2000

/** Reconciles open nodes with their keepers: when these fall silent, answer again, die, or lose nodes to a newer one. */
export class Reconciliation {
  readonly #options: RecoveryOptions
  readonly #inventories: Inventories
  readonly #adoption: Adoption
  readonly #reaper: Reaper
  readonly #settling = new KeyedMutex()
  #retry: NodeJS.Timeout | undefined

  constructor(
    options: RecoveryOptions,
    { inventories, adoption, reaper }: { inventories: Inventories; adoption: Adoption; reaper: Reaper },
  ) {
    this.#options = options
    this.#inventories = inventories
    this.#adoption = adoption
    this.#reaper = reaper
  }

  /** The keepers answer again: takes the state of nodes from them that was unknown, and reconciles the other nodes. */
  answered(): Promise<void> {
    return this.#settling.run('', async () => {
      clearTimeout(this.#retry)
      const { table, emit } = this.#options
      this.#inventories.forget()
      const inventory = await this.#inventories.now()
      if (inventory === undefined) return this.retryLater()
      this.#adoption.hold(inventory.ports)
      const runs = byUnit(inventory)
      const unsettled = new Set([...table.values()].filter((node) => !node.isReconciled))
      await Promise.all(
        [...table.values()].map((node) =>
          table.lock(node.key, async () => {
            if (table.get(node.key) !== node) return
            if (node.isReconciled) return this.#reconcile(node, runs.get(node.key))
            node.move('becomeKnown')
            await this.#adoption.adopt(node, runs.get(node.key))
            emit(node.project, node.updated())
          }),
        ),
      )
      for (const project of new Set([...unsettled].map(({ project }) => project)))
        await this.#reaper.finishRemovals(project)
      await this.#options.finishProjects()
      if (this.#reaper.hasOrphans) await this.#reaper.reapOrphans()
    })
  }

  /** A keeper does not answer: tells the clients that the state of its nodes is the last known one. */
  onUnresponsive(why: string): void {
    const { table, emit } = this.#options
    const doubtful = [...table.values()].filter((node) => node.unknownReason !== undefined)
    for (const project of new Set(doubtful.map(({ project }) => project)))
      emit(project, { type: 'log.error', message: `The state of nodes is unknown: ${why}` })
    for (const node of doubtful) emit(node.project, node.updated())
  }

  /** A keeper died with its units; `isOwn`: it was the keeper of this build, and a new one runs. */
  async onKeeperDeath(isHeld: (key: string) => boolean, isOwn: boolean): Promise<void> {
    const { table, lifecycle, links, emit } = this.#options
    lifecycle.recordKeeperDeath(isHeld, isOwn)
    const held = [...table.values()].filter(({ key }) => isHeld(key))
    const hurt = new Set(held.filter(({ status }) => status !== 'stopped').map(({ project }) => project))
    for (const project of hurt)
      emit(project, {
        type: 'log.error',
        message: `${keeperDiedReason}; its nodes are stopped and can be started again`,
      })
    await Promise.all(
      held.map((node) =>
        table.lock(node.key, async () => {
          // `answered` handles nodes whose state was unknown.
          if (table.get(node.key) !== node || !node.isReconciled) return
          const isToRun = node.status !== 'stopped' && lifecycle.isAlwaysOn(node)
          await lifecycle.onUnitGone(node, keeperDiedReason)
          if (isToRun && isOwn) await lifecycle.startIfPossible(node)
          if (node.newer === undefined) warn(this.#options, node.project, await links.restore(node))
        }),
      ),
    )
  }

  /** Nodes have left an older keeper: attaches their links in the keeper of this build. */
  moved(keys: readonly string[]): void {
    const { table, links, log } = this.#options
    for (const key of keys) {
      const node = table.get(key)
      if (node === undefined) continue
      void table
        .lock(node.key, async () => {
          if (table.get(key) === node && node.isReconciled && node.newer === undefined)
            warn(this.#options, node.project, await links.restore(node))
        })
        .catch((error: unknown) => log.error({ err: error, node: key }, 'a node that moved to another keeper'))
    }
  }

  /** Undoes operations whose answer was not awaited because the keeper of the node did not answer. */
  async #reconcile(node: EngineNode, run: Run | undefined): Promise<void> {
    const { keeper, links } = this.#options
    if (run?.unit?.exit === null && node.status === 'stopped')
      await keeper.call('unit.stop', { key: node.key, grace_ms: orphanGraceMs })
    if (node.newer !== undefined) return
    await links.reconcile(node, run?.ports ?? [])
    warn(this.#options, node.project, await links.restore(node))
  }

  /** Schedules `answered`, after an inventory failed although the keepers answer. */
  retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      // A keeper that does not answer triggers `answered` itself when it answers.
      if (this.#options.keeper.unknownReason === undefined)
        this.answered().catch(ignore('the failure of the inventory is logged, and the call is repeated'))
      else this.retryLater()
    }, retryMs)
    this.#retry.unref()
  }
}
