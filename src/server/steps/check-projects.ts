import { ProjectAccess } from '../access/project-access.ts'
import { identityOf, matchOf, type RequestStep, targetOf } from '../request-context.ts'

/** 403 or 404 for credentials that are for other projects. A process that leaves this step out has another one check it. */
export const checkProjects: RequestStep = (context, next) => {
  const { app, request } = context
  context.projects = new ProjectAccess(identityOf(context), app.shared.catalog?.registry)
  context.projects.requireEndpoint(matchOf(context), targetOf(context), request.method, app.routes)
  return next()
}
