import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Guests } from '../../../../runtime/node/drivers/nat/guests.ts'
import { freshDirectory } from '../../../support/directory.ts'

const [a, ptr, aaaa] = [1, 12, 28]

/** A query with one question, as a guest sends it. */
function query(name: string, type: number): Uint8Array {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Uint8Array.from([7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1])
}

/** The number of answers, and the data of the first one. */
function read(asked: Uint8Array, answer: Uint8Array | undefined) {
  if (answer === undefined) return undefined
  expect([...answer.subarray(0, 4)]).toEqual([7, 9, 0x85, 0x80])
  expect([...answer.subarray(12, asked.length)]).toEqual([...asked.subarray(12)])
  return [answer[7], ...answer.subarray(asked.length + 12)]
}

async function guestsOf(list: readonly object[]) {
  const file = join(await freshDirectory(), 'guests.json')
  const logged: string[] = []
  const write = async (now: readonly object[]) => {
    await writeFile(`${file}.new`, JSON.stringify(now))
    await rename(`${file}.new`, file)
  }
  await write(list)
  const guests = new Guests(file, (line) => logged.push(line))
  const ask = (name: string, type: number) => {
    const asked = query(name, type)
    return read(asked, guests.answer(asked))
  }
  return { guests, write, ask, file, logged }
}

const r1 = { port_number: 0, name: 'R1', address: '10.0.0.5' }

test('the names of guests are answered with their addresses, and the addresses with their names', async () => {
  const { ask } = await guestsOf([r1])
  expect(ask('r1', a)).toEqual([1, 10, 0, 0, 5])
  expect(ask('R1.Internal', a)).toEqual([1, 10, 0, 0, 5])
  expect(ask('5.0.0.10.in-addr.arpa', ptr)).toEqual([1, 2, ...Buffer.from('R1'), 8, ...Buffer.from('internal'), 0])
  expect(ask('r1', aaaa)).toEqual([0])
  // The resolvers of the host are asked.
  expect(ask('r2', a)).toBe(undefined)
  expect(ask('6.0.0.10.in-addr.arpa', ptr)).toBe(undefined)
  expect(ask('r1.example.org', a)).toBe(undefined)
})

test('guests are others as soon as their file has changed', async () => {
  const { guests, write, ask } = await guestsOf([r1])
  expect(guests.at(0)).toMatchObject({ name: 'R1', address: 0x0a000005 })
  await write([{ ...r1, port_number: 1, name: 'R2', address: '10.0.0.6' }])
  expect([guests.at(0), guests.at(1)]).toMatchObject([undefined, { name: 'R2', address: 0x0a000006 }])
  expect([guests.isReserved(0x0a000005), guests.isReserved(0x0a000006)]).toEqual([false, true])
  expect([ask('r1', a), ask('r2', a)]).toEqual([undefined, [1, 10, 0, 0, 6]])
})

test('a file that cannot be read is logged once, and the guests stay as they were; a missing one is none', async () => {
  const { guests, write, file, logged } = await guestsOf([r1])
  expect(guests.at(0)).toMatchObject({ name: 'R1' })
  await writeFile(`${file}.new`, 'not JSON')
  await rename(`${file}.new`, file)
  expect([guests.at(0), guests.at(1), guests.at(0)]).toMatchObject([{ name: 'R1' }, undefined, { name: 'R1' }])
  expect(logged).toEqual([expect.stringMatching(/^the guests stay as they were: .*JSON/)])
  await write([{ ...r1, name: 'R2' }])
  expect(guests.at(0)).toMatchObject({ name: 'R2' })
  await rm(file)
  expect(guests.at(0)).toMatchObject({ name: 'R2' })
  expect(logged).toHaveLength(1)
})

test('broken queries are left to the resolvers of the host', async () => {
  const { guests } = await guestsOf([r1])
  const good = query('r1', a)
  for (let length = 0; length < good.length; length++) expect(guests.answer(good.slice(0, length))).toBe(undefined)
  for (const [at, value] of [
    [2, 0x80],
    [2, 0x08],
    [5, 2],
    [12, 0xc0],
    [12, 63],
    [good.length - 1, 3],
  ] as const) {
    const broken = good.slice()
    broken[at] = value
    expect(guests.answer(broken)).toBe(undefined)
  }
})
