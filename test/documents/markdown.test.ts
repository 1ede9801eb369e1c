import { expect, test } from 'vitest'
import { missingLine } from './expected.ts'
import { parse } from './markdown.ts'
import { parseSession } from './session.ts'

const page = `# A page
<!-- continues: other.md#two-pcs -->

## What it \`is\`, and why

See [this](first-lab.md#type), not \`[that](nowhere)\`.

<!-- not run: needs a screen -->
\`\`\`sh
wireshark
\`\`\`

\`\`\`text
[no link](nowhere)
\`\`\`

## What it is and why
`

test('a document has blocks with their marks and sections, headings with anchors, and links', () => {
  const { blocks, anchors, links, code, continues } = parse(page)
  expect(blocks).toEqual([
    { language: 'sh', content: 'wireshark', mark: 'not run: needs a screen', section: 'what-it-is-and-why', line: 9 },
    { language: 'text', content: '[no link](nowhere)', mark: undefined, section: 'what-it-is-and-why', line: 13 },
  ])
  expect([...anchors]).toEqual(['a-page', 'what-it-is-and-why', 'what-it-is-and-why-1'])
  expect({ links, continues }).toEqual({ links: ['first-lab.md#type'], continues: 'other.md#two-pcs' })
  expect(code).toEqual(['is', '[that](nowhere)'])
})

test('a block without an end is an error that names its line', () => {
  expect(() => parse('text\n```sh\nls\n')).toThrow('line 2')
})

test('expected lines must come in order; times may differ, addresses may not', () => {
  const output = 'x 10.0.0.2 icmp_seq=1 time=1.25 ms\nsecond   line\n{"status":"started","more":1}\n'
  expect(missingLine('10.0.0.2 icmp_seq=1 time=0.312 ms\nsecond line', output)).toBeUndefined()
  expect(missingLine('..."status":"started"...', output)).toBeUndefined()
  expect(missingLine('10.0.0.3 icmp_seq=1', output)).toBe('10.0.0.3 icmp_seq=1')
  expect(missingLine('second line\n10.0.0.2', output)).toBe('10.0.0.2')
  expect(missingLine('', '')).toBeUndefined()
})

test('a session has a command, and the input and output at each prompt', () => {
  const session = '$ telnet 127.0.0.1 5001\nPC1> ping 10.0.0.2\n64 bytes\nr1(config)# end\nR2>'
  expect(parseSession(session)).toEqual({
    command: 'telnet 127.0.0.1 5001',
    steps: [
      { prompt: 'PC1>', typed: 'ping 10.0.0.2', expected: '64 bytes\n' },
      { prompt: 'r1(config)#', typed: 'end', expected: '' },
      { prompt: 'R2>', typed: '', expected: '' },
    ],
  })
  expect(() => parseSession('PC1> ping')).toThrow('begins with "$ "')
})
