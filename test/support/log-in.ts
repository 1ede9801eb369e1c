/** What a log-in answered, and the cookie that stands for it. */
export interface LoggedIn {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly setCookie: string
  /** As a browser sends it. */
  readonly cookie: string
}

/** Logs in as a page of the service does. */
export async function logIn(url: string, body: object, headers: Record<string, string> = {}): Promise<LoggedIn> {
  const answer = await fetch(`${url}/v2/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, ...headers },
    body: JSON.stringify(body),
  })
  const setCookie = answer.headers.get('set-cookie') ?? ''
  const shown = (await answer.json()) as Record<string, unknown>
  return { status: answer.status, body: shown, setCookie, cookie: setCookie.split(';', 1)[0] ?? '' }
}
