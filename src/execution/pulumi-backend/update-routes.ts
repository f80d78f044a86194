import { HttpError } from '../../stores/http/index.ts'
import { isJournalTested, journalVersion } from './cli-version.ts'
import { type Answer, badRequest, conflict, type Exchange, forbidden, notFound, ok, type Routes, requireUnfenced } from './exchange.ts'
import { countField, textField, textMap, toObject } from './json-fields.ts'
import type { PulumiUpdateKind, PulumiUpdateStatus } from './pulumi-backend.ts'
import { parsePulumiEvent } from './pulumi-event.ts'
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
    defineRoute(`POST ${stackPath}/${kind}`, 'run', (exchange: Exchange) => createUpdate(exchange, kind)),
  ),
  defineRoute(`POST ${updatePath}`, 'run', startUpdate),
  defineRoute(`GET ${updatePath}`, 'run', async exchange => {
    const { state, status } = findUpdate(exchange)
    // A token that is present makes the CLI poll again.
    if (state === 'created') return ok({ status: 'not started', events: [], continuationToken: '0' })
    if (state === 'running') return ok({ status: 'running', events: [], continuationToken: '0' })
    return ok({ status: status === 'succeeded' ? 'succeeded' : 'failed', events: [] })
  }),
  defineRoute(`POST ${updatePath}/cancel`, 'run', async exchange => {
    const tracked = findUpdate(exchange)
    const { updates, backend } = exchange.context
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
  defineRoute(`POST ${updatePath}/renew_lease`, 'update', exchange =>
    exchange.withBody(async () => {
      const tracked = runningUpdate(exchange)
      await exchange.context.backend.renewUpdate(tracked.update)
      // The same token for the whole update: an empty one would end the CLI, and a new one would void requests that are on their way.
      return ok({ token: tracked.token, tokenExpiration: expiration(exchange) })
    }),
  ),
  defineRoute(`POST ${updatePath}/events/batch`, 'update', exchange =>
    exchange.withBody(async ({ value }) => await recordEvents(exchange, toObject(value).events ?? [])),
  ),
  defineRoute(`POST ${updatePath}/events`, 'update', exchange =>
    exchange.withBody(async ({ value }) => await recordEvents(exchange, [value])),
  ),
  defineRoute(`POST ${updatePath}/complete`, 'update', exchange =>
    exchange.withBody(async ({ value }) => {
      const status = textField(toObject(value), 'status')
      if (!isStatus(status)) throw badRequest('status must be succeeded, failed or cancelled')
      const tracked = requireTracked(exchange)
      const { context } = exchange
      return await tracked.inOrder(async () => {
        // The CLI repeats the request if it did not get the answer.
        if (tracked.state === 'completed' && tracked.status === status) return ok()
        runningUpdate(exchange)
        await context.backend.completeUpdate(tracked.update, status)
        tracked.state = 'completed'
        tracked.status = status
        context.updates.end(tracked)
        return ok()
      })
    }),
  ),
]

async function createUpdate({ context, stack, cliVersion, withBody }: Exchange, kind: PulumiUpdateKind): Promise<Answer> {
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

async function startUpdate(exchange: Exchange): Promise<Answer> {
  return await exchange.withBody(async ({ value }) => {
    const { context, stack, cliVersion } = exchange
    const body = toObject(value)
    const tags = body.tags === undefined || body.tags === null ? undefined : textMap(body.tags, 'tags')
    const isJournaled = countField(body, 'journalVersion') >= journalVersion && isJournalTested(cliVersion, context.testedCliVersions)
    const tracked = findUpdate(exchange)
    if (tracked.state !== 'created') throw conflict('the update was started before')
    if (!tracked.update.isPreview) requireUnfenced(context)
    if (!context.updates.begin(tracked, isJournaled)) throw conflict(`another update of the stack ${stack.stack} is in progress`)
    try {
      const { version } = await context.backend.startUpdate(tracked.update, tags)
      const journal = isJournaled ? { journalVersion } : {}
      return ok({ version, token: tracked.token, tokenExpiration: expiration(exchange), ...journal })
    } catch (error) {
      // The backend may have taken the lock all the same: its state belongs to the Run, which releases it.
      tracked.refuse('abandoned', 'the update was not started')
      context.updates.end(tracked)
      throw error
    }
  })
}

async function recordEvents(exchange: Exchange, values: unknown): Promise<Answer> {
  if (!Array.isArray(values)) throw badRequest('events must be an array')
  if (values.length > maxEvents)
    throw new HttpError(413, 'TooLarge', `the request has ${values.length} events, at most ${maxEvents} are allowed`)
  const { update } = runningUpdate(exchange)
  const events = values.map(parsePulumiEvent).filter(each => each !== undefined)
  if (events.length > 0) await exchange.context.backend.recordEvents(update, events)
  return ok()
}

/** @throws {HttpError} 404 */
function findUpdate({ context, stack, parameters }: Exchange): TrackedUpdate {
  const tracked = context.updates.find(stack, parameters.update ?? '')
  if (!tracked) throw notFound('there is no such update')
  return tracked
}

/** That of a route with the update's token. */
export function requireTracked({ tracked }: Exchange): TrackedUpdate {
  if (!tracked) throw notFound('there is no such update')
  return tracked
}

/** @throws {HttpError} 403 if the update may not continue. */
export function runningUpdate(exchange: Exchange): TrackedUpdate {
  const tracked = requireTracked(exchange)
  const reason = refusalOf(exchange, tracked)
  if (reason !== undefined) throw forbidden(reason)
  return tracked
}

/** Why the update may not write; undefined if it may. */
export function refusalOf({ context }: Exchange, tracked: TrackedUpdate): string | undefined {
  if (tracked.refusal !== '') return tracked.refusal
  if (tracked.state !== 'running') return tracked.state === 'completed' ? 'the update is complete' : 'the update was not started'
  return tracked.update.isPreview ? undefined : context.fence()
}

const expiration = ({ context }: Exchange): number => Math.floor(context.now() / 1_000) + leaseSeconds
const isStatus = (text: string): text is PulumiUpdateStatus => text === 'succeeded' || text === 'failed' || text === 'cancelled'
