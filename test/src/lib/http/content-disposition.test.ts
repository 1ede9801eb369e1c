import { expect, test } from 'vitest'
import { attachment } from '../../../../src/lib/http/content-disposition.ts'

test('a download has its name in UTF-8, and in ASCII for older clients', () => {
  expect(attachment("Zürich (it's 100%).gns3project")).toBe(
    'attachment; filename="Z_rich (it_s 100_).gns3project"; filename*=UTF-8\'\'Z%C3%BCrich%20%28it%27s%20100%25%29.gns3project',
  )
  expect(attachment('a/b"\\\r\n.zip')).toBe('attachment; filename="a_b____.zip"; filename*=UTF-8\'\'a_b____.zip')
  expect(attachment('\ud800x')).toContain("filename*=UTF-8''%EF%BF%BDx")
})
