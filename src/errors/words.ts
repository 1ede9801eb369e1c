/** The header with the word of an error, for programs. The text of the body is for people, and may change. */
export const errorHeader = 'X-Patchbay-Error'

/** Every word of the header, with its statuses. The first word of a status is the default. */
export const errorWords = {
  'invalid-request': [[400], 'The path, the query or the body is not valid'],
  'is-lab-file': [[400], 'The text to import is a lab file already: PUT it to the topology of a project'],
  'is-appliance': [[400], 'The text to import is an appliance: POST it to /v2/templates/import'],
  unauthorized: [[401], 'Valid credentials are needed'],
  forbidden: [
    [403],
    'The role, the web page or the host name does not allow the request, or the path leaves its directory',
  ],
  'not-trusted': [[403], 'The file would run programs or open files of the host: `untrusted` lists them; see `trust`'],
  'not-found': [[404], 'Something that the request names does not exist, and has no word of its own below'],
  'no-such-path': [[404], 'The interface has no such path'],
  'no-such-project': [[404], 'There is no such project, or none that is open'],
  'project-closed': [[404], 'The project is on disk, and closed: open it first'],
  'no-such-node': [[404], 'The project has no such node'],
  'no-such-link': [[404], 'The project has no such link'],
  'no-such-template': [[404], 'There is no such template'],
  'no-such-port': [[404], 'The node has no such adapter or port'],
  'ports-do-not-fit': [[400], 'The two ports of a link are the same one, or their lines differ'],
  'nothing-attached': [[404, 409], 'Nothing is attached to the port'],
  'no-such-compute': [[404], 'No compute has this id or name'],
  'no-such-organization': [[404], 'There is no such organization'],
  'no-such-file': [[404], 'The project has no such file'],
  'no-such-image': [[404], 'There is no such image to delete or rename'],
  'method-not-allowed': [[405], 'The path has other methods; see Allow'],
  'timed-out': [[408], 'The request did not come in time, or took too long'],
  conflict: [[409], 'The present state does not allow the request, and has no word of its own below'],
  'image-missing': [[409], 'The host lacks an image: `image` has its name'],
  'port-taken': [[409], 'Another node, link or program has the port'],
  'no-port-left': [[409], 'All ports of the range are in use'],
  'project-exists': [[409], 'The project is open already, or is on another compute'],
  'name-taken': [[409], 'Another project, another node of the project, or another image has the name'],
  'made-otherwise': [[409], 'The project was made by another user, or not from a lab file: see `take_over`'],
  'node-exists': [[409], 'A node has this id already'],
  'node-running': [[409], 'The node must be stopped first'],
  locked: [[409], 'The node or the drawing is locked: set locked to false first'],
  'node-stopped': [[409], 'The node must run'],
  'not-in-time': [[409], 'What the request waits for did not come in time'],
  'ambiguous-compute': [[409], 'Several computes have this name: give an id'],
  'label-missing': [[409], 'No compute has the labels that the project or the node asks for'],
  'limit-reached': [
    [409, 413],
    'The organization has reached its limit of projects or computes, the deployment its limit of organizations (409), or what clients store its limit (413)',
  ],
  'compute-refuses': [[409], 'A compute has an incompatible version, or refuses the credentials'],
  'changed-meanwhile': [[412], 'If-Match names another version than the present one: read it again'],
  'too-large': [[413], 'The body or the image is larger than the limit'],
  'unsupported-media-type': [[415], 'A browser sent a body that is not application/json'],
  'range-not-satisfiable': [[416], 'The image has no such bytes'],
  'too-many-requests': [[429], 'Too many requests, feeds, joins of computes or wrong log-ins; see Retry-After'],
  'headers-too-large': [[431], 'The headers or the path are too long'],
  'internal-error': [[500], 'A defect of the service; its log says more'],
  'not-supported': [[501], 'The compute or this service has no such operation'],
  'compute-failed': [[502], 'A compute sent an invalid answer, or failed'],
  unavailable: [[503], 'Temporarily not possible; see Retry-After'],
  'compute-unreachable': [[503, 409], 'The needed compute, or every compute, is not connected'],
  'compute-lost': [[504], 'The connection to the compute ended, or a timeout passed, before its answer'],
  'disk-full': [[507], 'The disk is nearly full'],
} as const satisfies Readonly<Record<string, readonly [statuses: readonly number[], meaning: string]>>

export type ErrorWord = keyof typeof errorWords

const ofStatus = new Map<number, ErrorWord>()
for (const [word, [[status]]] of Object.entries(errorWords)) {
  if (!ofStatus.has(status)) ofStatus.set(status, word as ErrorWord)
}

/** The default word of a status. */
export const wordOfStatus = (status: number): ErrorWord =>
  ofStatus.get(status) ?? (status < 500 ? 'invalid-request' : 'internal-error')
