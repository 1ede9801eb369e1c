import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { exampleMap } from '../../../runtime/browser/examples/example-lab.ts'
import { exampleLab, withoutComments } from '../../../scripts/example-lab.js'
import { readLabFile } from '../../../src/labfile/read.ts'

const examples = resolve('examples')
const names = readdirSync(examples, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lab.yaml'))

test.each(names)('the map of %s has the nodes and links that the service makes of it', async (name) => {
  const text = readFileSync(join(examples, name), 'utf8')
  const example = exampleLab(text)
  const { lab, nodes, links } = await readLabFile(text)
  expect(example.lab).toBe(lab)
  expect(example.nodes.map((node) => node.name).sort()).toEqual(nodes.map((node) => node.name).sort())
  const pairs = (all: readonly (readonly string[])[]) => all.map((ends) => ends.toSorted().join(' ')).sort()
  expect(pairs(example.links)).toEqual(pairs(links.map(({ ends }) => ends.map(({ node }) => node))))
  for (const { x, y, name: own } of example.nodes) {
    const { settings } = nodes.find((node) => node.name === own) ?? {}
    expect([x, y]).toEqual([settings?.x, settings?.y])
  }
  const map = exampleMap(example)
  expect(map.nodes.map(({ name, node_type }) => [name, node_type])).toEqual(
    example.nodes.map(({ name, kind }) => [name, kind]),
  )
  expect(map.links.map((link) => link.nodes.map(({ node_id }) => node_id))).toEqual(example.links)
})

test.each(names)('%s is the same lab in the page, without its comments, and with checks only for tasks', (name) => {
  const text = readFileSync(join(examples, name), 'utf8')
  const { checks, ...lab } = parse(text)
  expect(withoutComments(text)).not.toMatch(/^\s*#/m)
  expect(parse(withoutComments(text))).toEqual('tasks' in lab ? { ...lab, checks } : lab)
})
