import { FitAddon } from '@xterm/addon-fit'
import { type ITheme, Terminal } from '@xterm/xterm'
import style from '@xterm/xterm/css/xterm.css' with { type: 'text' }
import { TerminalSizes } from '../../../src/client/terminal-sizes.ts'
import { randomHex } from '../../../src/lib/crypto/secret.ts'
import { resizeOf, type ShownConsole } from './console-size.ts'
import { HeldOutput } from './held-output.ts'
import { matchesOf, nextMatch } from './search.ts'

// Loaded when the first console is opened: it is larger than the rest of the page.

// Before the style sheets of the page, which change some of it.
document.head.insertAdjacentHTML('afterbegin', `<style>${style}</style>`)

const [light, dark]: readonly [ITheme, ITheme] = [
  { background: '#fbfcfd', foreground: '#1d2329', cursor: '#1d2329', selectionBackground: '#b9d9e4' },
  { background: '#0f1316', foreground: '#d7dee4', cursor: '#d7dee4', selectionBackground: '#2c5563' },
]

export interface OpenTerminal {
  /** Resolves when the terminal has room for more. */
  write(data: Uint8Array): Promise<void>
  /** Whether it can be seen. */
  setShown(isShown: boolean): void
  reset(): void
  /** Types a text as a paste of the user. */
  paste(text: string): void
  focus(): void
  setDark(isDark: boolean): void
  /** Fits the text to the size of the element: at once, or when it comes in sight. */
  fit(): void
  /** Selects the next match of a text, or the one before. False: there is none. */
  find(text: string, isBack: boolean): boolean
  /** The text of the whole scroll-back. */
  text(): string
  /** A name for the terminal of a further console: another one for each connection. */
  newName(): string
  /** Has a console take the size of the terminal, when it is first in sight and whenever it changes there; undefined: none. */
  resizes(console: ShownConsole | undefined): void
  close(): void
}

interface TerminalOptions {
  readonly isDark: boolean
  readonly label: string
  /** Gets what the user types and pastes. */
  readonly onInput: (data: string) => void
  /** Ctrl-Shift-F was pressed. */
  readonly onSearch: () => void
  /** Ctrl-Shift-Up was pressed: Tab belongs to the guest, so that this is how the keyboard leaves. */
  readonly onLeave: () => void
}

/** The terminal that has the focus answers the event `copy` with its selection; the clipboard of scripts needs https. */
const copy = (): void => void document.execCommand('copy')

/** The parts of xterm 6.0.0 that draw: they have no interface for others. */
interface Inside {
  readonly _core?: {
    readonly _renderService?: { handleSelectionChanged?: (...selection: unknown[]) => void }
    readonly _viewport?: { readonly _scrollableElement?: { setRevealOnScroll?: (isRevealed: boolean) => void } }
  }
}

/**
 * After each output that scrolls, xterm draws all rows for the selection, also where nothing is selected, and of a terminal that is not
 * shown. There it measures each character again, as those of hidden elements have no width.
 */
function drawSelectionOnly(terminal: Terminal): void {
  const { _renderService: service } = (terminal as Inside)._core ?? {}
  const draw = service?.handleSelectionChanged?.bind(service)
  if (service === undefined || draw === undefined) return
  let wasSelected = false
  service.handleSelectionChanged = (...selection) => {
    const isSelected = selection[0] !== undefined
    if (isSelected || wasSelected) draw(...selection)
    wasSelected = isSelected
  }
}

/** A terminal in an element. */
export function openTerminal(
  element: HTMLElement,
  { isDark, label, onInput, onSearch, onLeave }: TerminalOptions,
): OpenTerminal {
  const sizes = new TerminalSizes()
  const terminal = new Terminal({
    fontFamily: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: 13,
    scrollback: 5000,
    // Guests choose colours without knowing the background.
    minimumContrastRatio: 4.5,
    theme: isDark ? dark : light,
    // Guests may print any escape sequence: none changes the title, or opens a window.
    windowOptions: {},
  })
  const fitter = new FitAddon()
  terminal.loadAddon(fitter)
  terminal.open(element)
  terminal.textarea?.setAttribute('aria-label', label)
  terminal.onData(onInput)
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== 'keydown' || !event.ctrlKey || !event.shiftKey) return true
    // The browser pastes by Ctrl-Shift-V itself.
    if (event.code === 'KeyV') return false
    if (event.code === 'KeyF' || event.code === 'ArrowUp') {
      event.preventDefault()
      // The page must not get the key: it would move the selected nodes.
      event.stopPropagation()
      if (event.code === 'KeyF') onSearch()
      else onLeave()
      return false
    }
    if (event.code !== 'KeyC') return true
    event.preventDefault()
    copy()
    return false
  })
  // What is selected is copied when the button is released, wherever the pointer is then.
  const copySelected = () => {
    if (terminal.hasSelection()) copy()
  }
  element.addEventListener('mousedown', (event) => {
    if (event.button === 0) addEventListener('mouseup', () => setTimeout(copySelected), { once: true })
  })
  const find = (text: string, isBack: boolean): boolean => {
    const { start: at } = terminal.getSelectionPosition() ?? {}
    // While the user types on, a selected match that still fits stays selected.
    const isAnother = terminal.getSelection().toLowerCase() !== text.toLowerCase()
    const selected = at && { row: at.y, column: at.x + (isAnother && isBack ? 1 : 0) }
    const match = nextMatch(matchesOf(text, terminal.buffer.active, terminal.cols), selected, isBack)
    terminal.clearSelection()
    if (match === undefined) return false
    const { row, column, size } = match
    terminal.select(column, row, size)
    const { viewportY } = terminal.buffer.active
    if (row < viewportY || row >= viewportY + terminal.rows) terminal.scrollToLine(row - Math.floor(terminal.rows / 2))
    return true
  }
  // xterm does not update the height of its scroll bar while it is out of sight: after a resize there it would stay scrolled back. xterm
  // observes its element since `open`, so its observer is called before this one.
  let isInSight = false
  let size = ''
  const fitInSight = () => {
    if (!isInSight) return
    fitter.fit()
    const { cols, rows } = terminal
    if (size === `${cols} ${rows}`) return
    size = `${cols} ${rows}`
    sizes.set(cols, rows)
  }
  const sight = new IntersectionObserver((changes) => {
    isInSight = changes.at(-1)?.isIntersecting === true
    fitInSight()
  })
  sight.observe(element)
  drawSelectionOnly(terminal)
  const output = new HeldOutput((data, taken) => terminal.write(data, taken))
  return {
    write: (data) => output.write(data),
    setShown(isShown) {
      // Each line that scrolls shows the scroll bar, and has another timer hide it.
      ;(terminal as Inside)._core?._viewport?._scrollableElement?.setRevealOnScroll?.(isShown)
      output.setShown(isShown)
    },
    reset() {
      output.flush()
      terminal.reset()
    },
    paste: (text) => terminal.paste(text),
    focus: () => terminal.focus(),
    setDark(isNowDark) {
      terminal.options.theme = isNowDark ? dark : light
    },
    fit: fitInSight,
    find,
    text() {
      const { active } = terminal.buffer
      return Array.from({ length: active.length }, (_, line) => active.getLine(line)?.translateToString(true) ?? '')
        .join('\n')
        .trimEnd()
    },
    newName: () => randomHex(8),
    resizes: (console) => sizes.show(console && resizeOf(console)),
    close() {
      output.close()
      sight.disconnect()
      terminal.dispose()
    },
  }
}
