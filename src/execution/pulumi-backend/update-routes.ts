import { HttpError } from '../../stores/http/index.ts'
import { isJournalTested, journalVersion } from './cli-version.ts'
import { countField, textField, textMap, toObject } from './json-fields.ts'
import type { PulumiUpdateKind, PulumiUpdateStatus } from './pulumi-backend.ts'
import { parsePulumiEvent } from './pulumi-event.ts'
import {
  badRequest,
  conflict,
  forbidden,
  notFound,
  ok,
  type RouteRequest,
  type RouteResponse,
  type Routes,
  requireUnfenced,
} from './route-request.ts'
import { defineRoute } from './router.ts'
import { TrackedUpdate } from './update-registry.ts'

const stackPath = '/api/stacks/:organization/:project/:stack'
const updatePath = `${stackPath}/update/:update`
const leaseSeconds = 300
/** The CLI sends at most 50. */
const maxEvents = 1_000

/** The life of an update, without its writes of state. */
export const updateRoutes: Routes = [
  ...(['update', 'preview', 'refresh', 'destroy'] as const).map(kind =>
    defineRoute(`POST ${stackPath}/${kind}`, 'run', (request: RouteRequest) => createUpdate(request, kind)),
  ),
  defineRoute(`POST ${updatePath}`, 'run', startUpdate),
  defineRoute(`GET ${updatePath}`, 'run', async request => {
    const { state, status } = findUpdate(request)
    // A token that is present makes the CLI poll again.
    if (state === 'created') return ok({ status: 'not started', events: [], continuationToken: '0' })
    if (state === 'running') return ok({ status: 'running', events: [], continuationToken: '0' })
    return ok({ status: status === 'succeeded' ? 'succeeded' : 'failed', events: [] })
  }),
  defineRoute(`POST ${updatePath}/cancel`, 'run', async request => {
    const tracked = findUpdate(request)
    const { updates, backend } = request.context
    if (tracked.state === 'running') tracked.refuse('canceled', 'the update was canceled')
    // Also when an earlier request could not complete it.
    if (tracked.state === 'canceled' && tracked.status === undefined)
      await tracked.inOrder(async () => {
        if (tracked.status !== undefined) return
        await backend.completeUpdate(tracked.update, 'cancelled')
        tracked.status = 'cancelled'
        updates.end(tracked)
      })
    return ok()
  }),
  defineRoute(`POST ${updatePath}/renew_lease`, 'update', request =>
    request.withBody(async () => {
      const tracked = runningUpdate(request)
      await request.context.backend.renewUpdate(tracked.update)
      // The same token for the whole update: an empty one would end the CLI, and a new one would void requests that are on their way.
      return ok({ token: tracked.token, tokenExpiration: expiration(request) })
    }),
  ),
  defineRoute(`POST ${updatePath}/events/batch`, 'update', request =>
    request.withBody(async ({ value }) => await recordEvents(request, toObject(value).events ?? [])),
  ),
  defineRoute(`POST ${updatePath}/events`, 'update', request =>
    request.withBody(async ({ value }) => await recordEvents(request, [value])),
  ),
  defineRoute(`POST ${updatePath}/complete`, 'update', request =>
    request.withBody(async ({ value }) => {
      const status = textField(toObject(value), 'status')
      if (!isStatus(status)) throw badRequest('status must be succeeded, failed or cancelled')
      const tracked = requireTracked(request)
      const { context } = request
      return await tracked.inOrder(async () => {
        // The CLI repeats the request if it did not get the answer.
        if (tracked.state === 'completed' && tracked.status === status) return ok()
        runningUpdate(request)
        await context.backend.completeUpdate(tracked.update, status)
        tracked.state = 'completed'
        tracked.status = status
        context.updates.end(tracked)
        return ok()
      })
    }),
  ),
]

async function createUpdate({ context, stack, cliVersion, withBody }: RouteRequest, kind: PulumiUpdateKind): Promise<RouteResponse> {
  return await withBody(async ({ value }) => {
    const body = toObject(value)
    const options = toObject(body.options ?? {}, 'options')
    const isPreview = kind === 'preview' || options.dryRun === true
    if (!isPreview) requireUnfenced(context)
    const update = { id: context.createId(), stack, kind, isPreview, number: 0, cliVersion, isJournaled: false }
    if (!(await context.backend.readStack(stack))) throw notFound('there is no such stack')
    if (!context.updates.add(new TrackedUpdate(update, context.createToken())))
      throw new HttpError(429, 'TooManyUpdates', 'too many updates are running')
    return ok({ updateID: update.id, requiredPolicies: [], messages: [] })
  })
}

async function startUpdate(request: RouteRequest): Promise<RouteResponse> {
  return await request.withBody(async ({ value }) => {
    const { context, stack, cliVersion } = request
    const body = toObject(value)
    const tags = body.tags === undefined || body.tags === null ? undefined : textMap(body.tags, 'tags')
    const isJournaled = countField(body, 'journalVersion') >= journalVersion && isJournalTested(cliVersion, context.testedCliVersions)
    const tracked = findUpdate(request)
    if (tracked.state !== 'created') throw conflict('the update was started before')
    if (!tracked.update.isPreview) requireUnfenced(context)
    if (!context.updates.begin(tracked, isJournaled)) throw conflict(`another update of the stack ${stack.stack} is in progress`)
    try {
      const { version } = await context.backend.startUpdate(tracked.update, tags)
      const journal = isJournaled ? { journalVersion } : {}
      return ok({ version, token: tracked.token, tokenExpiration: expiration(request), ...journal })
    } catch (error) {
      // The backend may have taken the lock all the same: its state belongs to the Run, which releases it.
      tracked.refuse('abandoned', 'the update was not started')
      context.updates.end(tracked)
      throw error
    }
  })
}

async function recordEvents(request: RouteRequest, values: unknown): Promise<RouteResponse> {
  if (!Array.isArray(values)) throw badRequest('events must be an array')
  if (values.length > maxEvents)
    throw new HttpError(413, 'TooLarge', `the request has ${values.length} events, at most ${maxEvents} are allowed`)
  const { update } = runningUpdate(request)
  const events = values.map(parsePulumiEvent).filter(each => each !== undefined)
  if (events.length > 0) await request.context.backend.recordEvents(update, events)
  return ok()
}

/** @throws {HttpError} 404 */
function findUpdate({ context, stack, parameters }: RouteRequest): TrackedUpdate {
  const tracked = context.updates.find(stack, parameters.update ?? '')
  if (!tracked) throw notFound('there is no such update')
  return tracked
}

/** That of a route with the update's token. */
export function requireTracked({ tracked }: RouteRequest): TrackedUpdate {
  if (!tracked) throw notFound('there is no such update')
  return tracked
}

/** @throws {HttpError} 403 if the update may not continue. */
export function runningUpdate(request: RouteRequest): TrackedUpdate {
  const tracked = requireTracked(request)
  const reason = refusalOf(request, tracked)
  if (reason !== undefined) throw forbidden(reason)
  return tracked
}

/** Why the update may not write; undefined if it may. */
export function refusalOf({ context }: RouteRequest, tracked: TrackedUpdate): string | undefined {
  if (tracked.refusal !== '') return tracked.refusal
  if (tracked.state !== 'running') return tracked.state === 'completed' ? 'the update is complete' : 'the update was not started'
  return tracked.update.isPreview ? undefined : context.fence()
}

const expiration = ({ context }: RouteRequest): number => Math.floor(context.now() / 1_000) + leaseSeconds
const isStatus = (text: string): text is PulumiUpdateStatus => text === 'succeeded' || text === 'failed' || text === 'cancelled'
