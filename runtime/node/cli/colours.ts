import colors from 'picocolors'

/** Whether a stream shows colours: only a terminal does. picocolors would colour the files and pipes of CI systems. */
const hasColours = ({ isTTY }: { readonly isTTY?: boolean }): boolean =>
  isTTY === true && (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb'

/** Colours of standard output. */
export const colours = colors.createColors(hasColours(process.stdout))

/** Colours of standard error. */
export const errorColours = colors.createColors(hasColours(process.stderr))

/** The head of a table, and the title of a part of a text. */
export const heading = (text: string): string => colours.bold(colours.cyan(text))

/** Colours of the words for states: of nodes, labs and links, of checks of the machine, and of parts of a test. */
const ofStates: Readonly<Record<string, (text: string) => string>> = {
  ...Object.fromEntries(['ok', 'running', 'ready'].map((word) => [word, colours.green])),
  ...Object.fromEntries(['warning', 'suspended', 'not run', 'no new labs'].map((word) => [word, colours.yellow])),
  ...Object.fromEntries(['error', 'failed', 'not connected'].map((word) => [word, colours.red])),
  // Of links on which no frames pass, or in one direction only.
  ...Object.fromEntries(
    ['one_way', 'silent', 'peer_unreachable', 'port_taken', 'detached'].map((word) => [word, colours.red]),
  ),
}

/** A word for a state in its colour; `text` is shown, by default the word. */
export const coloured = (state: string, text = state): string => (ofStates[state] ?? String)(text)
