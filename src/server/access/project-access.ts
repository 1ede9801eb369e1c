import type { LabRegistry } from '../../labs/registry.ts'
import { forbidden, ignoreNotFound, notFound } from '../../lib/errors/api-error.ts'
import type { Identity } from '../../model/access/identity.ts'
import { isInScope, type ProjectScope } from '../../model/access/project-scope.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { RouteMatch, Routes } from '../http/router.ts'
import { spellingsOf } from './role-needed.ts'

/** Which projects a request may concern; see `ProjectScope`. */
export class ProjectAccess {
  readonly #identity: Pick<Identity, 'name' | 'projects' | 'limits'>
  readonly #labs: Pick<LabRegistry, 'nameOf' | 'idOf'> | undefined

  constructor(
    identity: Pick<Identity, 'name' | 'projects' | 'limits'>,
    labs: Pick<LabRegistry, 'nameOf' | 'idOf'> | undefined,
  ) {
    this.#identity = identity
    this.#labs = labs
  }

  /** Whether all projects are its own. */
  get isWhole(): boolean {
    return this.#identity.projects === undefined
  }

  /** The only projects of the client; undefined: all. */
  get scope(): ProjectScope | undefined {
    return this.#identity.projects
  }

  /** Whether the client sees a project. `name`: of a lab that is gone. */
  sees(id: string, name = this.#labs?.nameOf(id)): boolean {
    return isInScope(this.#identity.projects, id, name)
  }

  /** Whether the client sees a project of this id, whatever its name. */
  namesId(id: string): boolean {
    return isInScope(this.#identity.projects, id, undefined)
  }

  /** 404 for a project that the client does not see, as for one that is not there. `word`: by which the client has named it. */
  require(id: string, word = id): void {
    if (!this.sees(id)) throw noSuchProject(word)
  }

  /**
   * 403 unless the client sees the project that it creates or renames: a lab by its name, any project by an id that the token names.
   * An id that the token does not name may be that of another's project, and a directory may be, too.
   */
  requireNew({
    project_id: id,
    name,
    path,
  }: {
    project_id?: string | null
    name?: string | null
    path?: string | null
  }): void {
    const { projects, limits, name: who } = this.#identity
    if (projects === undefined) return
    // The link of a student is for a lab that is there, and must not make it again when it was deleted.
    if (id != null && limits !== undefined)
      throw forbidden(`project_id: "${who}" has limits, and cannot choose the id of a project`)
    if (path != null) throw forbidden(`path: "${who}" is limited to certain projects and cannot choose a directory`)
    const isOwn = id != null ? isInScope(projects, id, undefined) : name != null && isInScope(projects, undefined, name)
    if (!isOwn) throw forbidden(`name: "${who}" is limited to the projects ${projects.join(', ')}`)
  }

  /** 403 unless the client sees the project by this name. */
  requireName(id: string, name: string): void {
    if (!this.sees(id, name)) this.requireNew({ name })
  }

  /** 403 for requests that credentials for some projects may not make, 404 for projects of others. */
  requireEndpoint({ endpoint, params }: RouteMatch, path: string, method: string, routes: Routes): void {
    if (this.isWhole) return
    const { project_id: word } = params
    if (word !== undefined) {
      const id = this.#idOf(word)
      if (id !== undefined && this.sees(id)) return
      // A lab that the request makes is checked when its name is known.
      const isThere = id !== undefined && this.#labs?.nameOf(id) !== undefined
      if (endpoint.scope === 'own' && !isThere) return
      // The id of a project that the path names is not revealed to clients that do not see it.
      throw noSuchProject(word)
    }
    if (endpoint.scope !== undefined) return
    const there = endpoint.forwardPath?.(path)
    // Another program as compute may decode the path before it matches its routes.
    const inner = there === undefined ? [] : spellingsOf(there).map((it) => routes.match(method, it))
    if (inner.length > 0 && inner.every((it) => this.#allowsThere(it))) return
    throw forbidden(
      `Authorization: "${this.#identity.name}" is limited to certain projects; this request needs access to all of them`,
    )
  }

  /** The id of a project that a path names by its id, or of a lab by its name; undefined: there is no lab of that name. */
  #idOf(word: string): string | undefined {
    if (isUuid(word)) return word
    try {
      return this.#labs?.idOf(word)
    } catch (error) {
      ignoreNotFound(error)
      return undefined
    }
  }

  #allowsThere(match: RouteMatch | undefined): boolean {
    if (match === undefined) return false
    const { project_id: id } = match.params
    if (id === undefined) return match.endpoint.scope === 'shared'
    return match.endpoint.owner === 'project' && this.sees(id)
  }
}

const noSuchProject = (word: string) => notFound(`project_id: there is no project ${word}`, { code: 'no-such-project' })
