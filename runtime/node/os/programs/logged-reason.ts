/** The last thing that skopeo or umoci has said, without its level, its time and control characters; empty: it has said nothing. */
export const loggedReason = (stderr: string): string =>
  (stderr.trim().split('\n').at(-1) ?? '')
    .replace(/^.*\bmsg="?/, '')
    .replace(/"$/, '')
    .replace(/\p{Cc}/gu, '')
    .slice(0, 300)
