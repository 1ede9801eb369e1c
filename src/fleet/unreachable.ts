import { ApiError } from '../errors/api-error.ts'

/** The compute was not reached: nothing of the request was begun there. */
export class Unreachable extends ApiError {}
