/** The part of noVNC 1.7.0 that is used (its docs/API.md); the package has no types. */
declare module '@novnc/novnc' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, url: string, options?: { readonly shared?: boolean })
    background: string
    /** Whether the screen is scaled to its element. */
    scaleViewport: boolean
    focus(options?: FocusOptions): void
    disconnect(): void
    sendCtrlAltDel(): void
    /** Presses and releases a key; with `isDown` only one of the two. `code` is that of KeyboardEvent. */
    sendKey(keysym: number, code: string, isDown?: boolean): void
    clipboardPasteFrom(text: string): void
  }
}
