/** The variables that every program gets. None is a setting of the service, so none is a secret. */
const always = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR', 'TZ', 'TERM'],
  ...['LANG', 'LANGUAGE', 'LC_*'],
  // Libraries of programs that are installed outside the system directories.
  'LD_LIBRARY_PATH',
]

/** Variables for Node programs of this project: options of Node, and the packet path. */
export const forNode = [
  'NODE_OPTIONS',
  'NODE_COMPILE_CACHE',
  'TSX_TSCONFIG_PATH',
  'PATCHBAY_PACKET_PATH',
  'PATCHBAY_CABLES',
]
/** Variables for programs that may open a window, or play sound. */
export const forDesktop = [
  ...['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'XDG_SESSION_TYPE'],
  ...['DBUS_SESSION_BUS_ADDRESS', 'PULSE_SERVER'],
]
/** For the session daemon of libvirt: the directories of its sockets and files. */
export const forSession = ['XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME']

export type Environment = Readonly<Record<string, string | undefined>>

/** Selects variables by name; a final `*` matches any text. */
export function selected(names: readonly string[], from: Environment = process.env): Record<string, string> {
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const isWanted = (name: string) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
  const kept = Object.entries(from).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(kept.filter(([name]) => isWanted(name)))
}

/** The environment of a program: the common variables, those that it names, and those that are set for it. */
export const environmentFor = (
  names: readonly string[] = [],
  set: Readonly<Record<string, string>> = {},
  from: Environment = process.env,
): Record<string, string> => ({ ...selected([...always, ...names], from), ...set })
