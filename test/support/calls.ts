/** The JSON of an answer that must be a success; undefined when it is empty. */
export async function succeeded<T>(method: string, path: string, answer: Response): Promise<T> {
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** Requests to the service at an address, which must succeed; with a token, on behalf of its user. `init`: what else each has. */
export const callsAt = (url: string, token?: string, init: object = {}) => ({
  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(url + path, {
      ...init,
      method,
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return succeeded(method, path, answer)
  },
})
