/** The call that a service answered last, such as `GET /v2/projects`, and its origin; undefined before the first one. */
let last: { readonly call: string; readonly server: string } | undefined

export function recordAnswer(method: string, url: string): void {
  const { origin, pathname } = new URL(url)
  last = { call: `${method} ${pathname}`, server: origin }
}

export const lastAnswer = () => last
