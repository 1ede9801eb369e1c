import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { client } from '../state/client.ts'
import { isDark } from '../state/theme.ts'
import type { ShownConsole } from './console-size.ts'
import type { NodeConsoleProps } from './node-console.tsx'
import { tabOf } from './tabs.ts'
import type { OpenTerminal } from './terminal.ts'

/** Time between two tries to connect, ms. */
const retryMs = 1000
/** Characters typed during a connect that are kept for it. */
const maxEarly = 4096

/** The console of a node. It connects again, with the scroll-back, when the connection is lost or the node starts again. */
export function ConsoleView({ node, dock, console, isShown }: NodeConsoleProps) {
  const element = useRef<HTMLDivElement>(null)
  const terminal = useRef<OpenTerminal>(undefined)
  const input = useRef<((text: string) => void) | undefined>(undefined)
  /** The console while it is connected; it has the size of this terminal while that can be seen. */
  const connected = useRef<ShownConsole>(undefined)
  const isSeen = useRef(isShown)
  /** What was typed before the first connection was there. */
  const early = useRef('')
  const state = useSignal<'loading' | 'open' | 'closed'>('loading')
  const { project_id, node_id, name } = node
  const tab = tabOf(node_id, console)
  const isRunning = node.status === 'started'

  useEffect(() => {
    const over = new AbortController()
    const observer = new ResizeObserver(() => {
      if (element.current !== null && element.current.clientHeight > 0) terminal.current?.fit()
    })
    void (async () => {
      const { openTerminal } = await import('./terminal.ts')
      if (over.signal.aborted || element.current === null) return
      terminal.current = openTerminal(element.current, {
        isDark: isDark.peek(),
        label: `Console of ${name}`,
        onInput: (text) => dock.type(tab, text),
        onSearch() {
          dock.isSearching.value = true
        },
        onLeave() {
          element.current?.closest('.dock')?.querySelector<HTMLElement>('.tab.is-active button')?.focus()
        },
      })
      observer.observe(element.current)
      terminal.current.fit()
      state.value = 'closed'
    })()
    const remove = dock.add(tab, {
      send(text) {
        if (input.current !== undefined) input.current(text)
        else if (early.current.length + text.length <= maxEarly) early.current += text
      },
      focus: () => terminal.current?.focus(),
      terminal: {
        find: (text, isBack) => terminal.current?.find(text, isBack) === true,
        text: () => terminal.current?.text() ?? '',
        paste: (text) => terminal.current?.paste(text),
      },
    })
    return () => {
      remove()
      over.abort()
      observer.disconnect()
      terminal.current?.close()
      terminal.current = undefined
    }
  }, [tab])

  const isLoaded = state.value !== 'loading'
  useEffect(() => {
    if (!isLoaded || !isRunning) return
    const over = new AbortController()
    const connect = async () => {
      const further = console === undefined ? undefined : { name: console, terminal: terminal.current?.newName() ?? '' }
      const streams = await client.console({ project: project_id, node: node_id }, { signal: over.signal, ...further })
      const writer = streams.writable.getWriter()
      const send = (text: string) =>
        void writer.write(text).catch(ignore('the reader reports that the connection is lost'))
      input.current = send
      if (early.current !== '') send(early.current)
      early.current = ''
      connected.current = { node, terminal: further?.terminal }
      if (isSeen.current) terminal.current?.resizes(connected.current)
      // The service sends the scroll-back again.
      terminal.current?.reset()
      state.value = 'open'
      const reader = streams.readable.getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return console !== undefined && dock.close(tab)
        dock.hasOutput(tab)
        await terminal.current?.write(value)
      }
    }
    void (async () => {
      while (!over.signal.aborted) {
        await connect().catch(ignore('the hint says that it is not connected'))
        // Another connection may have begun.
        if (over.signal.aborted) return
        input.current = undefined
        connected.current = undefined
        terminal.current?.resizes(undefined)
        state.value = 'closed'
        await pause(retryMs, over.signal)
      }
    })()
    return () => {
      over.abort()
      input.current = undefined
      connected.current = undefined
      terminal.current?.resizes(undefined)
    }
  }, [isLoaded, isRunning, project_id, tab])

  useEffect(() => {
    terminal.current?.setDark(isDark.value)
  }, [isDark.value])
  // At once: what is typed right after the click on a tab is for its console, not keys of commands for the map.
  useLayoutEffect(() => {
    if (isShown && dock.wanted === tab) terminal.current?.focus()
  }, [isShown])
  useEffect(() => {
    terminal.current?.setShown(isShown)
    isSeen.current = isShown
    if (isShown) terminal.current?.fit()
    terminal.current?.resizes(isShown ? connected.current : undefined)
    if (!isShown) return
    if (dock.wanted === tab) terminal.current?.focus()
  }, [isShown, isLoaded])

  const hint = !isRunning
    ? `${name} is not running. Start it to use its console.`
    : state.value === 'closed'
      ? 'Connecting …'
      : undefined
  return (
    <div class={isShown ? 'console' : 'console is-behind'}>
      {hint !== undefined && <p class="console-hint">{hint}</p>}
      <div class="console-screen" ref={element} />
    </div>
  )
}
