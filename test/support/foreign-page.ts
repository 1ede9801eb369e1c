import fc from 'fast-check'

const evil = 'https://evil.example'

/** Where browsers say that a page of another site asks, by headers that no page can forge. */
const sources: readonly Record<string, string>[] = [
  { origin: evil, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  { origin: evil, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  { origin: 'null', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  {
    ...{ origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' },
    ...{ 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' },
  },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'frame' },
  { origin: evil, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'websocket' },
  { origin: evil },
]

/** The same, put together at random: old browsers leave headers out, and new ones may have other words. */
const mixedSources: fc.Arbitrary<Record<string, string>> = fc
  .record(
    {
      origin: fc.constantFrom(evil, 'null', 'http://127.0.0.1:1', 'http://localhost', 'file://'),
      'sec-fetch-site': fc.constantFrom('cross-site', 'same-site'),
      'sec-fetch-mode': fc.constantFrom('navigate', 'no-cors', 'cors', 'websocket', 'same-origin'),
      'sec-fetch-dest': fc.constantFrom('document', 'iframe', 'image', 'empty', 'object', 'websocket'),
    },
    { requiredKeys: [] },
  )
  .filter((headers) => headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)

const mediaTypes = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json',
]

const agents = [
  'Mozilla/5.0',
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 Chrome/140',
]

/** Headers of a request that a page of another site has a browser send. */
export const fromForeignPage: fc.Arbitrary<Record<string, string>> = fc
  .record({
    source: fc.oneof(fc.constantFrom(...sources), mixedSources),
    more: fc.record(
      {
        'content-type': fc.constantFrom(...mediaTypes),
        'user-agent': fc.constantFrom(...agents),
        referer: fc.constantFrom(`${evil}/`, `${evil}/v2/`, 'http://127.0.0.1:1/'),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ source, more }) => ({ ...source, ...more }))
