import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkLicence,
  findLicence,
  hostnameWarning,
  licencePath,
  requireLicence,
  writeLicence,
} from '../../../../runtime/node/drivers/iou/licence.ts'
import { freshDirectory } from '../../../support/directory.ts'

/** Of no host: only its form counts. */
const key = '0123456789abcdef'
const good = `[license]\nlab = ${key};\n`

test.for([
  good,
  `\ufeff# ours\r\n; too\r\n\r\n[other]\r\nx=1\r\n[license]\r\nLAB:${key.toUpperCase()} ; \r\nother = nonsense\r\n`,
  `[license]\n  lab=${key};`,
])('%j is a licence for lab', (text) => {
  expect(checkLicence(text, 'lab')).toBe(undefined)
  expect(checkLicence(text, 'LAB')).toBe(undefined)
})

test.for([
  ['', 'it has no section [license]'],
  [`[licence]\nlab = ${key};`, 'it has no section [license]'],
  [`lab = ${key};`, 'line 1 is before any section, expected [license] first'],
  [`[license]\n${key}`, 'line 2 cannot be parsed, expected [license] or "hostname = key;"'],
  [`[license\nlab = ${key};`, 'line 1 cannot be parsed, expected [license] or "hostname = key;"'],
  [`[license]\nlab2 = ${key};`, 'it has no licence for this host, lab'],
  [`[license]\n[other]\nlab = ${key};`, 'it has no licence for this host, lab'],
  [`[license]\nlab = ${key};\nlab = ${key};`, 'it has more than one licence for this host, lab'],
  [`[license]\nlab = ${key}`, 'the licence of lab does not end with a semicolon'],
  [`[license]\nlab =`, 'the licence of lab does not end with a semicolon'],
  [`[license]\nlab = ${key}0;`, 'the licence of lab has 17 characters, expected 16 before the semicolon'],
  [`[license]\nlab = ;`, 'the licence of lab has 0 characters, expected 16 before the semicolon'],
  [`[license]\nlab = 0123456789abcdeé;`, 'the licence of lab has characters that are not ASCII'],
  [`[license]\nlab = 0123456789abcdeg;`, 'the licence of lab has characters that are not hexadecimal digits'],
  [`[license]\nlab = ${key};x`, 'the licence of lab continues after the semicolon'],
] as const)('%j is refused', ([text, defect]) => {
  expect(checkLicence(text, 'lab')).toBe(defect)
})

test('no message contains a value of a licence', () => {
  const secret = 'f00dfeed'
  const piece = fc.constantFrom('[license]', '\n', 'lab', ' = ', ';', secret, secret + secret, 'é', '[', ' ')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      expect(checkLicence(pieces.join(''), 'lab') ?? '').not.toContain('f00d')
    }),
    { numRuns: 200 },
  )
})

test('the licence files are searched in order', async () => {
  const [home, directory, own] = [await freshDirectory(), await freshDirectory(), await freshDirectory()]
  const places = { configured: undefined, home, directory, own: join(own, 'iourc') }
  await expect(findLicence(places)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('no licence'),
  })
  expect(licencePath(places)).toBe(null)
  await expect(findLicence({ ...places, own: undefined })).rejects.toMatchObject({ status: 409 })
  await writeLicence(own, good)
  expect(await findLicence(places)).toBe(join(own, 'iourc'))
  for (const path of [join(directory, 'iourc'), join(home, '.iourc')]) {
    await writeFile(path, good)
    expect(await findLicence(places)).toBe(path)
    expect(licencePath(places)).toBe(path)
  }
  const configured = join(own, 'list')
  await expect(findLicence({ ...places, configured })).rejects.toMatchObject({
    ...{ status: 409, message: 'iou.iourc_path: list does not exist' },
  })
  expect(licencePath({ ...places, configured })).toBe(null)
  await writeFile(configured, good)
  expect(licencePath({ ...places, configured })).toBe(configured)
  expect(await findLicence({ ...places, configured })).toBe(configured)
  expect(await findLicence({ ...places, configured: '' })).toBe(join(home, '.iourc'))
})

test('a path that exists and is not a file is refused', async () => {
  const [home, directory] = [await freshDirectory(), await freshDirectory()]
  await mkdir(join(directory, 'iourc'))
  const places = { configured: undefined, home, directory, own: undefined }
  await expect(findLicence(places)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('not a file'),
  })
  await expect(findLicence({ ...places, configured: directory })).rejects.toMatchObject({
    ...{ status: 409, message: expect.stringContaining('not a file') },
  })
})

test('only the service can read the licence file of a node, also after a second write', async () => {
  const directory = join(await freshDirectory(), 'run')
  for (const content of [good, `${good}# again\n`]) {
    await writeLicence(directory, content)
    const path = join(directory, 'iourc')
    expect(await readFile(path, 'utf8')).toBe(content)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  }
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  expect(await readdir(directory)).toEqual(['iourc'])
  await expect(writeLicence(directory, 'x'.repeat(70_000))).rejects.toMatchObject({ status: 400 })
})

test('a licence in a file is checked like one in a text', async () => {
  const directory = await freshDirectory()
  const path = join(directory, 'iourc')
  const refused = (part: string) => ({ status: 409, message: expect.stringContaining(part) })
  await expect(requireLicence(path, 'lab')).rejects.toMatchObject(refused('Reading the licence file iourc'))
  await writeFile(path, good)
  await expect(requireLicence(path, 'lab')).resolves.toBe(undefined)
  await writeFile(path, `\ufeff[license]\nlab = 0123456789abcdeé;\n`)
  await expect(requireLicence(path, 'lab')).rejects.toMatchObject(refused('not ASCII'))
  await writeFile(path, 'x'.repeat(70_000))
  await expect(requireLicence(path, 'lab')).rejects.toMatchObject(refused('more than 65536 bytes'))
})

test('a long host name causes a warning', () => {
  expect(hostnameWarning('a23456789012345')).toBe(undefined)
  expect(hostnameWarning('a234567890123456')).toContain('more than 15 characters')
})
