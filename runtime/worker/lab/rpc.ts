import type { LabCopyInput } from '../../../src/labs/archives/duplicate.ts'
import type { StudentLabWork } from '../../../src/labs/classes/student-lab.ts'
import type { Caller } from '../../../src/model/access/caller.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import type { StoredEntries } from '../directory/rpc.ts'
import type { ObjectReply } from '../shared/object-reply.ts'
import type { Encoded } from '../shared/rpc-json.ts'

/** What a copy of a lab is made from. */
export interface LabCopy {
  /** The id of the lab that is copied. */
  readonly source: string
  /** Its document, in its stored form (`encodeEntries`). */
  readonly entries: Encoded<StoredEntries>
  readonly input: LabCopyInput
  readonly caller: Caller
}

/**
 * The object of one lab, as isolates and other objects call it. Objects of an earlier and of a later version talk to each other during a
 * deployment: names, order and encoding of arguments stay as they are, and what is new is optional.
 */
export interface LabRpc {
  /** A request of a client about this lab, or that creates it, whom an isolate has let in (`Admissions`). */
  fetch(request: Request): Promise<Response>

  // From the directory.

  /** The compute of a node or of a direct link. */
  computeOf(id: string, part: string): Promise<string | undefined>
  /** The jobs of the present program of the object. */
  jobs(): Promise<Encoded<LabJob[]>>
  removeJob(id: string): Promise<void>
  /**
   * Moves the part of this lab that is on a compute to another compute, on behalf of the service; the result: its id. `show` is called now and
   * then with what the move does.
   */
  move(id: string, from: string, show: (doing: string) => Promise<void>): Promise<ObjectReply<string>>
  /** Ends a move between two files: it fails, and the lab stays. */
  cancelMove(from: string): Promise<void>
  /** Does what a class wants of this lab, on behalf of a caller. */
  workOnStudentLab(id: string, work: Encoded<StudentLabWork>, caller: Caller): Promise<ObjectReply>
  /** Removes the lab with its organization. Its files on computes stay there. The caller then calls `end`. */
  discard(): Promise<void>
  /** Ends the program of the object, which would send the head of the lab again. Never answers. */
  end(): Promise<void>

  // From the object of another lab.

  /** Makes this lab a copy of another one. */
  copyOf(id: string, copy: LabCopy): Promise<ObjectReply<LabProject>>
}
