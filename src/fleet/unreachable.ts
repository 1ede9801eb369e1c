import { ApiError } from '../errors.ts'

/** The compute was not reached: nothing of the request was begun there. */
export class Unreachable extends ApiError {}
