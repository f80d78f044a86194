import { sliceMembers } from '../../stores/pulumi/index.ts'
import { textField, textMap, toObject } from './json-fields.ts'
import type { PulumiUpdateRecord } from './pulumi-backend.ts'
import { badRequest, conflict, notFound, ok, type RouteRequest, type Routes, requireUnfenced } from './route-request.ts'
import { defineRoute, stackOf } from './router.ts'
import { stackKey, TrackedUpdate } from './update-registry.ts'
import { withSecretsUrl } from './with-secrets-url.ts'

const projectPath = '/api/stacks/:organization/:project'
const stackPath = `${projectPath}/:stack`
const maxPageSize = 100

export const stackRoutes: Routes = [
  defineRoute('GET /api/user/stacks', 'run', async ({ context, query }) => {
    const parameter = (name: string) => query.get(name) ?? undefined
    const filter = {
      ...{ organization: parameter('organization'), project: parameter('project') },
      ...{ tagName: parameter('tagName'), tagValue: parameter('tagValue') },
    }
    const { stacks, continueToken } = await context.backend.listStacks(filter, parameter('continuationToken'))
    return ok({
      stacks: stacks.map(({ id, lastUpdateSeconds, resourceCount }) => ({
        ...{ id: stackKey(id), orgName: id.organization, projectName: id.project, stackName: id.stack },
        ...{ lastUpdate: lastUpdateSeconds, resourceCount, links: { self: '' } },
      })),
      continuationToken: continueToken,
    })
  }),
  defineRoute(`HEAD ${projectPath}`, 'run', async ({ context, stack: { organization, project } }) => {
    if (!(await context.backend.projectExists(organization, project))) throw notFound('there is no such project')
    return ok()
  }),
  defineRoute(`POST ${projectPath}`, 'run', request =>
    request.withBody(async ({ value, text }) => {
      const { context, parameters } = request
      requireUnfenced(context)
      const body = toObject(value)
      const stack = stackOf({ ...parameters, stack: textField(body, 'stackName') })
      if (!/^[A-Za-z0-9._-]{1,100}$/.test(stack.stack)) throw badRequest('stackName must have 1 to 100 characters of A-Z a-z 0-9 . _ -')
      requireLocalConfig(body.config)
      const state = body.state === undefined || body.state === null ? undefined : Buffer.from(sliceMembers(text).get('state') ?? '')
      if (state) toObject(body.state, 'state')
      await context.backend.createStack(stack, { tags: textMap(body.tags, 'tags'), state })
      return ok()
    }),
  ),
  defineRoute(`GET ${stackPath}`, 'run', async ({ context, stack }) => {
    const found = await context.backend.readStack(stack)
    if (!found) throw notFound('there is no such stack')
    const { id, version, tags } = found
    const activeUpdate = context.updates.active(stack)?.update.id ?? found.activeUpdate ?? ''
    return ok({ id: stackKey(id), orgName: id.organization, projectName: id.project, stackName: id.stack, activeUpdate, tags, version })
  }),
  defineRoute(`DELETE ${stackPath}`, 'run', async ({ context, stack, query }) => {
    requireUnfenced(context)
    requireIdle(context, stack)
    await context.backend.deleteStack(stack, { force: query.get('force') === 'true' })
    return ok()
  }),
  defineRoute(`PATCH ${stackPath}/tags`, 'run', request =>
    request.withBody(async ({ value }) => {
      requireUnfenced(request.context)
      await request.context.backend.writeTags(request.stack, textMap(value, 'the body'))
      return ok()
    }),
  ),
  defineRoute(`POST ${stackPath}/rename`, 'run', request =>
    request.withBody(async ({ value }) => {
      const { context, stack } = request
      requireUnfenced(context)
      requireIdle(context, stack)
      const body = toObject(value)
      const renamed = {
        ...stack,
        stack: textField(body, 'newName') || stack.stack,
        project: textField(body, 'newProject') || stack.project,
      }
      await context.backend.renameStack(stack, renamed)
      return ok()
    }),
  ),
  defineRoute(`PUT ${stackPath}/config`, 'run', request =>
    request.withBody(async ({ value }) => {
      requireLocalConfig(value)
      return ok()
    }),
  ),
  defineRoute(`GET ${stackPath}/export`, 'run', request => exportDeployment(request)),
  defineRoute(`GET ${stackPath}/export/:version`, 'run', request => exportDeployment(request, request.parameters.version)),
  defineRoute(`POST ${stackPath}/import`, 'run', request =>
    request.withBody(async ({ value, text }) => {
      const { context, stack, cliVersion } = request
      requireUnfenced(context)
      requireIdle(context, stack)
      if (!('deployment' in toObject(value))) throw badRequest('the body must be a deployment: {"version":3,"deployment":{…}}')
      await context.backend.importDeployment(stack, Buffer.from(text))
      const imported = new TrackedUpdate(
        { id: context.createId(), stack, kind: 'update', isPreview: false, number: 0, cliVersion, isJournaled: false },
        context.createToken(),
      )
      // The CLI polls its status until it succeeded.
      imported.state = 'completed'
      imported.status = 'succeeded'
      context.updates.add(imported)
      return ok({ updateId: imported.update.id })
    }),
  ),
  defineRoute(`GET ${stackPath}/updates`, 'run', async ({ context, stack, query }) => {
    const pageSize = Math.min(pageNumber(query.get('pageSize'), maxPageSize), maxPageSize)
    const updates = await context.backend.listUpdates(stack, { page: pageNumber(query.get('page'), 1), pageSize })
    return ok({ updates: updates.map(toUpdateInfo) })
  }),
  defineRoute(`GET ${stackPath}/updates/latest`, 'run', async ({ context, stack }) => {
    const [latest] = await context.backend.listUpdates(stack, { page: 1, pageSize: 1 })
    if (!latest) throw notFound('the stack has no update yet')
    return ok({ info: toUpdateInfo(latest) })
  }),
  // Previews are no part of the history.
  defineRoute(`GET ${stackPath}/updates/latest/previews`, 'run', async () => ok({ updates: [] })),
]

async function exportDeployment({ context, stack, url }: RouteRequest, versionText?: string): ReturnType<Routes[number]['handler']> {
  if (versionText !== undefined && !/^\d{1,15}$/.test(versionText)) throw notFound('there is no such version')
  const version = versionText === undefined ? undefined : Number(versionText)
  const bytes = await context.backend.readDeployment(stack, version)
  return bytes ? { status: 200, bytes: withSecretsUrl(bytes, url) } : ok({ version: 3, deployment: null })
}

/** @throws {HttpError} 409 while an update of the stack is active. */
function requireIdle(context: RouteRequest['context'], stack: RouteRequest['stack']): void {
  if (context.updates.active(stack)) throw conflict('an update of the stack is in progress')
}

/** @throws {HttpError} 400 for configuration in an environment of Pulumi ESC, which this endpoint does not have. */
function requireLocalConfig(config: unknown): void {
  if (config === undefined || config === null) return
  if (textField(toObject(config, 'config'), 'environment') !== '')
    throw badRequest('the configuration of a stack cannot be in an ESC environment; use a file, Pulumi.<stack>.yaml')
}

const pageNumber = (text: string | null, otherwise: number): number =>
  text !== null && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : otherwise

const toUpdateInfo = ({
  kind,
  version,
  startSeconds,
  endSeconds,
  environment,
  result,
  resourceChanges,
  resourceCount,
}: PulumiUpdateRecord) => ({
  ...{
    kind,
    version,
    startTime: startSeconds,
    endTime: endSeconds,
    message: '',
    environment,
    config: {},
    result,
    resourceChanges,
    resourceCount,
  },
})
