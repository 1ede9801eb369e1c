import { signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { path } from '../../../src/compute/remote/paths.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { notifyError } from '../state/notices.ts'
import type { NodeConsoleProps } from './node-console.tsx'
import type { OpenedScreen } from './screen.ts'

/** Time between two tries to connect, ms. */
const retryMs = 1000

/** The screen of a node. It connects again when the connection is lost or the node starts again. */
export function ScreenView({ node, dock, isShown }: NodeConsoleProps) {
  const element = useRef<HTMLDivElement>(null)
  const screen = useRef<OpenedScreen>(undefined)
  const isOpen = useSignal(false)
  const { project_id, node_id, name } = node
  const isRunning = node.status === 'started'

  useEffect(() => {
    const clipboard = signal('')
    const remove = dock.add(node_id, {
      send: (text) => screen.current?.type(text),
      focus: () => screen.current?.focus(),
      screen: {
        clipboard,
        give: (text) => screen.current?.give(text),
        pressCtrlAltDel: () => screen.current?.pressCtrlAltDel(),
      },
    })
    const over = new AbortController()
    const connect = async () => {
      const { openScreen } = await import('./screen.ts')
      const host = element.current
      if (over.signal.aborted || host === null) return
      const url = location.origin.replace(/^http/, 'ws') + path`/v2/projects/${project_id}/nodes/${node_id}/console/vnc`
      await new Promise<void>((resolve) => {
        const opened = openScreen(host, url, {
          onOpen() {
            isOpen.value = true
            if (dock.wanted === node_id) opened.focus()
          },
          onClose() {
            forget()
            resolve()
          },
          onClipboard(text) {
            clipboard.value = text
          },
        })
        screen.current = opened
        const forget = onAbort(over.signal, () => opened.close())
      })
      screen.current = undefined
      isOpen.value = false
    }
    void (async () => {
      while (isRunning && !over.signal.aborted) {
        await connect().catch(notifyError)
        await pause(retryMs, over.signal)
      }
    })()
    return () => {
      remove()
      over.abort()
    }
  }, [isRunning, project_id, node_id])

  // At once, as of a console.
  useLayoutEffect(() => {
    if (isShown && dock.wanted === node_id) screen.current?.focus()
  }, [isShown])

  const hint = !isRunning
    ? `${name} is not running. Start it to see its screen.`
    : isOpen.value
      ? undefined
      : 'Connecting …'
  return (
    <section class={isShown ? 'console' : 'console is-behind'} aria-label={`Screen of ${name}`}>
      {hint !== undefined && <p class="console-hint">{hint}</p>}
      <div class="console-screen is-picture" ref={element} />
    </section>
  )
}
