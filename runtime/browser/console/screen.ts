import RFB from '@novnc/novnc'
import { keystrokesOf } from './keystrokes.ts'

// Loaded when the first screen is opened.

/** The keysym of the left Shift key (X11, keysymdef.h). */
const shift = 0xffe1

interface ScreenOptions {
  /** The screen is connected. */
  readonly onOpen: () => void
  /** The connection has ended. */
  readonly onClose: () => void
  /** The guest has put a text into its clipboard. */
  readonly onClipboard: (text: string) => void
}

/** The screen of a node in an element. */
export interface OpenedScreen {
  focus(): void
  /** Types a text by keys of a US keyboard. */
  type(text: string): void
  /** Puts a text into the clipboard of a guest that has an agent for that. */
  give(text: string): void
  pressCtrlAltDel(): void
  close(): void
}

/** Connects to a screen at the address of its websocket. */
export function openScreen(
  element: HTMLElement,
  url: string,
  { onOpen, onClose, onClipboard }: ScreenOptions,
): OpenedScreen {
  const screen = new RFB(element, url, { shared: true })
  screen.background = 'transparent'
  screen.scaleViewport = true
  screen.addEventListener('connect', onOpen)
  screen.addEventListener('disconnect', onClose)
  screen.addEventListener('clipboard', (event) => onClipboard((event as CustomEvent<{ text: string }>).detail.text))
  return {
    focus: () => screen.focus({ preventScroll: true }),
    type(text) {
      for (const { keysym, code, isShifted } of keystrokesOf(text)) {
        if (isShifted) screen.sendKey(shift, 'ShiftLeft', true)
        screen.sendKey(keysym, code)
        if (isShifted) screen.sendKey(shift, 'ShiftLeft', false)
      }
    },
    give: (text) => screen.clipboardPasteFrom(text),
    pressCtrlAltDel: () => screen.sendCtrlAltDel(),
    close: () => screen.disconnect(),
  }
}
