import { kindOf, type NodeKindName, nodeKinds } from '../../model/kinds/node.ts'
import type { Endpoint } from '../../server/http/endpoint.ts'

/** The first page of the reference, in Markdown. */
export const apiOverview = `Runs emulated network labs over HTTP: projects, nodes, links, consoles.

**Two versions.** \`/v2\` is the interface to use; its groups come first. \`/v1\` is the older version, with the same projects and nodes, for clients that know it.

**A first lab.** Create a project, put nodes in it, patch their ports together, start them:

\`\`\`sh
url=http://127.0.0.1:3080/v2/compute/projects
curl $url -d '{"name": "first lab"}'               # answers project_id
curl $url/{project_id}/pc/nodes -d '{"name": "PC1",
  "startup_script": "ip 10.0.0.1/24"}'             # node_id, console
curl -X POST $url/{project_id}/pc/nodes/{node_id}/start
telnet 127.0.0.1 {console}
\`\`\`

A link is two NIOs whose ports mirror each other: \`POST .../adapters/0/ports/0/nio\` at both ends, or \`POST /v2/links\` for both at once.

**Credentials.** On the machine itself you need none, unless some are configured. Then send \`Authorization: Bearer TOKEN\`, or user and password with HTTP Basic; pages
log in once with \`POST /v2/session\`. Every operation names the role that it needs: \`read\`, \`operate\` or \`admin\`.

**Errors** are \`{"message", "status"}\`: what is wrong, and what is expected. The header \`X-Patchbay-Error\` has a code for programs, such as \`no-such-project\`; every error response lists them. A refused request changes nothing. Ids are UUIDs (case-insensitive); members that are absent or null in an update stay unchanged.

**Events.** \`GET /v2/compute/notifications\` and the feed of a project are JSON lines, server-sent events (\`Accept: text/event-stream\`) or websockets, and resume after a broken
connection with \`Last-Event-ID\`.

This page is generated from the declarations that validate the requests. \`/openapi.json\` is the same for programs.
`

/** Groups that have operations of both API versions, or of none. */
const mixed = new Set(['server', 'reference'])
const isShownLater = (kind: NodeKindName) => kindOf(kind).isShownFirst !== true

/** What people look for first; other groups of the API version follow in the order of their endpoints. */
const first = [
  'v2 compute projects',
  ...nodeKinds.toSorted((a, b) => +isShownLater(a) - +isShownLater(b)).map((kind) => `v2 ${kind} nodes`),
  'v2 links',
]

/** The group under which an endpoint is shown: of one API version, or of none. */
export function tagOf({ tag, path }: Pick<Endpoint, 'tag' | 'path'>): string {
  if (!mixed.has(tag)) return tag
  const encode = /^\/(v\d)\//.exec(path)?.[1]
  return encode === undefined ? 'service' : `${encode} service`
}

const descriptions: Readonly<Record<string, string>> = {
  service: 'The service itself, in no version of the interface: metrics, this reference.',
}

/** The groups in the order of the reference: v2, then those without an API version, then v1. Those of v1 are folded. */
export function tagsOf(endpoints: readonly Endpoint[]): readonly object[] {
  const names = [...new Set(endpoints.map(tagOf))]
  const rank = (name: string) => {
    const index = first.indexOf(name)
    if (index >= 0) return index
    return first.length + (name.startsWith('v2') ? 0 : name.startsWith('v1') ? 2 : 1)
  }
  return names
    .toSorted((a, b) => rank(a) - rank(b))
    .map((name) => ({
      name,
      ...(descriptions[name] !== undefined && { description: descriptions[name] }),
      ...(name !== first[0] && { 'x-tag-expanded': false }),
    }))
}

/** The title of every endpoint; where a group has the same one twice, with its path. */
export function titlesOf(endpoints: readonly Endpoint[]): ReadonlyMap<Endpoint, string> {
  const keyOf = (endpoint: Endpoint) => `${tagOf(endpoint)}: ${endpoint.summary}`
  const counts = new Map<string, number>()
  for (const endpoint of endpoints) counts.set(keyOf(endpoint), (counts.get(keyOf(endpoint)) ?? 0) + 1)
  return new Map(
    endpoints.map((endpoint) => {
      const isAlone = counts.get(keyOf(endpoint)) === 1
      return [endpoint, isAlone ? endpoint.summary : `${endpoint.summary} (${endpoint.path})`]
    }),
  )
}
