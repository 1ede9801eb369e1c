import { describe, expect, it } from 'vitest'
import { ZipArchives } from '../../../runtime/node/labs/zip-archives.ts'
import type { ArchiveMember } from '../../../src/controller/archives.ts'
import { openRecords } from '../../support/service-records.ts'

const archives = async () => {
  const { records } = await openRecords()
  return new ZipArchives({ records, minFreeMb: () => 0, bodyTimeoutMs: 60_000 })
}

const member = (name: string, text: string): ArchiveMember => ({
  ...{ name, size: Buffer.byteLength(text), modified: Date.now() },
  content: new Blob([text]).stream(),
})

describe('a zip archive', () => {
  it.each([0, 1, 9])('gives back what was written at level %i, also what is empty', async (level) => {
    const zip = await archives()
    const texts = ['', 'x', 'text '.repeat(200_000)]
    async function* members() {
      for (const [at, text] of texts.entries()) yield member(`${at}`, text)
    }
    await using archive = await zip.open(zip.write(members(), level))
    expect([...archive.members]).toEqual(texts.map((text, at) => [`${at}`, text.length]))
    for (const [at, text] of texts.entries())
      expect((await new Response(await archive.read(`${at}`)).text()) === text).toBe(true)
  })
})
