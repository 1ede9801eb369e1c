/** Why a text is not JSON, and what would be right. The message quotes nothing of the text: it may hold a secret. */
export function jsonFault(text: string): string {
  const begin = text.trimStart()
  if (begin === '') return 'it contains only whitespace; send an object such as {"name": "lab"}, or nothing'
  if (begin.startsWith('<')) return `it looks like XML or HTML; ${example}`
  if (begin.startsWith('--')) return `it looks like a multipart form; ${example}`
  if (!/^[[{"]/.test(begin)) {
    if (/^[\w.-]+=/.test(begin)) return `it looks like a form (name=value); ${example}`
    if (/^[\w.-]+:(\s|$)/.test(begin)) return `it looks like YAML; ${example}`
    return `it does not begin with {, [ or "; ${example}`
  }
  return withPosition(text, begin)
}

const example = 'send JSON such as {"name": "lab"}'

/** Finds the first fault outside of quoted texts. */
function withPosition(text: string, begin: string): string {
  const bare = withoutTexts(text)
  const rules: readonly (readonly [RegExp, string])[] = [
    [/'/, 'write names and strings in double quotes, not in single quotes'],
    [/,\s*[}\]]/, 'there is a comma before } or ]: leave it out'],
    [
      /\b(?:NaN|Infinity|undefined|None)\b/,
      'NaN, Infinity, undefined and None are not JSON values: use a number or null',
    ],
    [/\b(?:True|False)\b/, 'write true and false in lower case'],
    [/\/\/|\/\*|#/, 'JSON has no comments: leave them out'],
    [/[{,]\s*[A-Za-z_]\w*\s*:/, 'write names in double quotes'],
    [/\b0\d|\b0x|(?:^|[^\d])\.\d|\d\.(?:$|[^\d])|\+\d/, 'not a JSON number: write it like 10, -0.5 or 1e3'],
  ]
  for (const [pattern, fault] of rules) {
    const at = pattern.exec(bare)?.index
    if (at !== undefined) return `${positionText(text, at)}: ${fault}`
  }
  if (begin.startsWith('{') && count(bare, '{') > count(bare, '}')) return 'it ends too early: a } is missing'
  if (count(bare, '[') > count(bare, ']')) return 'it ends too early: a ] is missing'
  if (count(bare, '"') % 2 === 1) return 'a closing double quote is missing'
  const gap = /(?:"·*"|[\w\]}])\s*(?=["{[])/.exec(bare)
  if (gap !== null) return `${positionText(text, gap.index + gap[0].length)}: a comma or a colon is missing before it`
  return `a punctuation mark is missing, extra or misplaced; ${example}`
}

/** The text with a dot for every character within double quotes, so that only JSON's own characters are left. */
const withoutTexts = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"/gs, (string) => `"${'·'.repeat(Math.max(0, string.length - 2))}"`)

const count = (text: string, sign: string): number => text.split(sign).length - 1

function positionText(text: string, at: number): string {
  const before = text.slice(0, at).split('\n')
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}
