import { describe, expect, it } from 'vitest'
import { withFormFile } from '../../../../src/server/http/form-file.ts'

const boundary = 'line-of-dashes'

/** A request with this body, in pieces of `size` bytes. */
function posted(
  text: string,
  { size = text.length, type = `multipart/form-data; boundary=${boundary}` } = {},
): Request {
  const bytes = new TextEncoder().encode(text)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size))
      controller.close()
    },
  })
  return new Request('http://localhost/import', {
    method: 'POST',
    headers: { 'Content-Type': type },
    body,
    ...{ duplex: 'half' },
  })
}

const part = (head: string, content: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`
const form = (...parts: string[]) => `${parts.join('')}--${boundary}--\r\n`
const content = `PK\r\n--line-of\r\n\r\n--\r${'x'.repeat(100)}\r\n`
const field = part('name="note"', 'a field')
const file = part('name="file"; filename="lab.zip"', content)

describe('withFormFile', () => {
  it.each([1, 2, 7, 60, 1000])(
    'gives the bytes of the file of a form that comes in pieces of %i bytes',
    async (size) => {
      for (const text of [form(file), form(field, file, field), `preamble\r\n${form(file)}`]) {
        const request = await withFormFile(posted(text, { size }))
        expect(await request.text()).toBe(content)
        expect(request.headers.get('content-type')).toBeNull()
      }
    },
  )

  it('gives an empty file', async () => {
    const empty = part('name="file"; filename="empty"', '')
    expect(await (await withFormFile(posted(form(empty)))).text()).toBe('')
  })

  it('takes a boundary in quotes', async () => {
    const type = `Multipart/Form-Data; charset=utf-8; boundary="${boundary}"`
    expect(await (await withFormFile(posted(form(file), { type }))).text()).toBe(content)
  })

  it('leaves other requests as they are', async () => {
    const request = posted(form(file), { type: 'application/zip' })
    expect(await withFormFile(request)).toBe(request)
  })

  it.each([
    ['has no file', form(field)],
    ['ends before its last boundary', `--${boundary}\r\nContent-Disposition: form-data; filename="a`],
    ['bytes before its file', form(part('name="note"', 'x'.repeat(70_000)), file)],
  ])('refuses a form that %s', async (why, text) => {
    await expect(withFormFile(posted(text, { size: 1000 }))).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(why),
    })
  })

  it('refuses a form without a boundary', async () => {
    const type = 'multipart/form-data'
    await expect(withFormFile(posted(form(file), { type }))).rejects.toMatchObject({ status: 400 })
  })

  it('fails while the file is read when the form ends within it', async () => {
    const text = form(file).slice(0, -boundary.length)
    const request = await withFormFile(posted(text, { size: 10 }))
    await expect(request.text()).rejects.toMatchObject({ status: 400 })
  })
})
