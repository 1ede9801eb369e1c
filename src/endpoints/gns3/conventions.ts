import type { Conventions } from '../../labs/lab/conventions.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import { runsAlwaysInGns3 } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import { sharedKinds } from './names.ts'

/** The most numbers that are tried for a name. */
const maxTried = 1_000_000

/** What clients of GNS3 2.2 expect of labs. */
export const gns3Conventions: Conventions = {
  nodeName,
  labName: (wanted, isTaken) =>
    isTaken(nameKey(wanted)) ? numbered(wanted, (n) => `${wanted}-${n}`, isTaken) : wanted,
  templateSettings(template, settings) {
    const gns3 = sharedKinds.find(([{ name }]) => name === template.template_type)?.[1]
    const given = template.builtin ? gns3?.template?.properties : template
    const all = { ...settings, ...gns3?.ofNode?.(settings), ...gns3?.atCreation?.(given ?? {}) }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => ![undefined, null, ''].includes(value as '')))
  },
  runsAlways: runsAlwaysInGns3,
  showsExisting: true,
  linksNodeToItself: false,
}

/** Without blanks; a taken `PC` becomes `PC1`, `PC1` the first of `PC{0}`, which stands for the first free number. */
function nodeName(wanted: string, isTaken: (key: string) => boolean): string {
  const whole = wanted.replaceAll(' ', '')
  const format = isTaken(nameKey(whole)) ? whole.replace(/\d+$/, '{0}') : whole
  if (!/\{(0|id)\}/.test(format)) {
    if (format !== '' && !isTaken(nameKey(format))) return format
    return numbered(wanted, (n) => `${format}${n}`, isTaken)
  }
  const unknown = format.replaceAll(/\{(0|id|name)\}/g, '').match(/\{[^}]*\}?|\}/)?.[0]
  if (unknown !== undefined)
    throw conflict(`name: ${unknown} is not a replacement in the name of a node; use {0} or {id}`)
  const named = format.replaceAll('{name}', 'Node')
  return numbered(wanted, (n) => named.replaceAll(/\{(0|id)\}/g, String(n)), isTaken)
}

function numbered(wanted: string, nameOf: (n: number) => string, isTaken: (key: string) => boolean): string {
  for (let n = 1; n < maxTried; n++) {
    const name = nameOf(n)
    if (name.length > 255) break
    if (!isTaken(nameKey(name))) return name
  }
  throw conflict(`name: no name is free for ${wanted}; choose another name`)
}
