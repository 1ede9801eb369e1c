/** The header with the code of an error, for programs. The text of the body is for people, and may change. */
export const errorHeader = 'X-Patchbay-Error'

/**
 * Every code of the header, with its statuses. An error without a code of its own has that of `codesByStatus`.
 * `scripts/errors-table.ts` makes the table in docs/errors.md.
 */
export const errorCodes = {
  'invalid-request': [[400], 'The path, the query or the body is not valid'],
  'is-lab-file': [[400], 'The text to import is already a lab file; send it with PUT to the topology of a project'],
  'is-appliance': [[400], 'The text to import is an appliance; POST it to /v2/templates/import'],
  unauthorized: [[401], 'Valid credentials are required'],
  forbidden: [
    [403],
    'The role, the web page or the host name does not permit the request, or the path points outside its directory',
  ],
  'not-trusted': [
    [403],
    'The file would run programs or open files of the host; `untrusted` lists them, `trust` accepts them',
  ],
  'not-found': [[404], 'A resource named in the request does not exist (no more specific code applies)'],
  'no-such-path': [[404], 'No such endpoint'],
  'no-such-project': [[404], 'No such project, or it is not open'],
  'project-closed': [[404], 'The project exists on disk but is closed; open it first'],
  'no-such-node': [[404], 'The project has no such node'],
  'no-such-link': [[404], 'The project has no such link'],
  'no-such-template': [[404], 'No such template'],
  'no-such-port': [[404], 'The node has no such adapter or port'],
  'ports-do-not-fit': [[400], 'The two ends of a link are the same port, or ports of different types'],
  'nothing-attached': [[404, 409], 'Nothing is attached to the port'],
  'no-such-compute': [[404], 'No compute has this id or name'],
  'no-such-organization': [[404], 'No such organization'],
  'no-such-file': [[404], 'The project has no such file'],
  'no-such-image': [[404], 'No such image to delete or rename'],
  'method-not-allowed': [[405], 'The endpoint does not allow this method; see Allow'],
  'timed-out': [[408], 'The request was not received in time, or took too long'],
  conflict: [[409], 'The current state does not allow the request (no more specific code applies)'],
  'image-missing': [[409], 'The host does not have a required image; `image` names it'],
  'port-taken': [[409], 'The port is in use by another node, link or program'],
  'no-port-left': [[409], 'All ports of the range are in use'],
  'project-exists': [[409], 'The project is already open, or is on another compute'],
  'name-taken': [[409], 'The name is in use by another project, another node of the project, or another image'],
  'made-otherwise': [[409], 'The project was created by another user, or not from a lab file; see `take_over`'],
  'node-exists': [[409], 'A node with this id already exists'],
  'node-running': [[409], 'The node must be stopped first'],
  locked: [[409], 'The node or drawing is locked; set `locked` to false first'],
  'node-stopped': [[409], 'The node must be running'],
  'not-in-time': [[409], 'What the request waits for did not happen in time'],
  'ambiguous-compute': [[409], 'Several computes have this name; use the id'],
  'label-missing': [[409], 'No compute has the labels that the project or node requires'],
  'limit-reached': [
    [409, 413],
    'A limit is reached: projects or computes of the organization, organizations of the deployment, nodes, running nodes or memory of a token in a lab (409), or data stored by clients (413)',
  ],
  'compute-refuses': [[409], 'A compute has an incompatible version, or rejected the credentials'],
  'changed-meanwhile': [[412], 'If-Match does not name the current version; read the resource again'],
  'too-large': [[413], 'The body or the image is larger than the limit'],
  'unsupported-media-type': [[415], 'A browser sent a body that is not application/json'],
  'range-not-satisfiable': [[416], 'The range is outside the image'],
  'too-many-requests': [[429], 'Too many requests, feeds, joining computes or failed log-ins; see Retry-After'],
  'headers-too-large': [[431], 'The headers or the path are too long'],
  'internal-error': [[500], 'A bug in the service; see its log'],
  'not-supported': [[501], 'This service or the compute does not support the operation'],
  'compute-failed': [[502], 'A compute sent an invalid response, or failed'],
  unavailable: [[503], 'Temporarily unavailable; see Retry-After'],
  'compute-unreachable': [[503, 409], 'The required compute, or every compute, is not connected'],
  'compute-lost': [[504], 'The compute did not respond: connection lost or timed out'],
  'disk-full': [[507], 'The disk is nearly full'],
} as const satisfies Readonly<Record<string, readonly [statuses: readonly number[], meaning: string]>>

export type ErrorCode = keyof typeof errorCodes

/** The codes of errors that say nothing but their status. */
const codesByStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid-request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'timed-out',
  409: 'conflict',
  412: 'changed-meanwhile',
  413: 'too-large',
  415: 'unsupported-media-type',
  416: 'range-not-satisfiable',
  429: 'too-many-requests',
  431: 'headers-too-large',
  500: 'internal-error',
  501: 'not-supported',
  502: 'compute-failed',
  503: 'unavailable',
  504: 'compute-lost',
  507: 'disk-full',
}

/** The default code of a status. */
export const codeOfStatus = (status: number): ErrorCode =>
  codesByStatus[status] ?? (status < 500 ? 'invalid-request' : 'internal-error')
