import { runResource, workerResource } from '../../api/index.ts'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { matchingStacks } from '../projection/index.ts'
import {
  type ActionRequest,
  actionNames,
  type BulkRequest,
  type BulkResult,
  bulkActionNames,
  destructiveActions,
} from '../protocol/index.ts'
import { runActions, stackActions, workerActions } from './available-actions.ts'
import { type ActionSources, carryOut } from './carry-out.ts'
import { errorBody, failedBody } from './error-response.ts'
import { readReportedState } from './read-blockers.ts'
import { requireRecentSignIn } from './recent-sign-in.ts'
import { rightsOf } from './rights-of.ts'
import type { Call, Routes } from './route.ts'
import { readStack } from './stack/stack-request.ts'

const bulkAtATime = 8
const maxBulk = 10_000

/** What users do, and what they can do now. */
export const actionRoutes: Routes = { 'GET actions': actionsOf, 'POST actions': act, 'POST bulk': actOnMany }

async function actionsOf(call: Call) {
  const client = await call.client()
  const [kind, first = '', second = ''] = call.path
  if (kind === 'workers') return await workerActions(await client.resource(workerResource).get(first), rightsOf(call, { name: first }))
  const rights = rightsOf(call, { namespace: first, name: second })
  if (kind === 'stacks') {
    const stack = await readStack({ client, namespace: first, name: second })
    return await stackActions(stack, rights, await readReportedState(client, stack))
  }
  if (kind === 'runs') return await runActions(await client.resource(runResource).get(second, { namespace: first }), rights)
  throw new StatusError('NotFound', 'use actions/stacks/NAMESPACE/NAME, actions/runs/NAMESPACE/NAME or actions/workers/NAME')
}

async function act(call: Call) {
  const { session, body } = call
  const request = (await body()) as ActionRequest
  if (!actionNames.includes(request.action) || typeof request.name !== 'string' || request.name === '')
    throw badRequest(`the body must have an action (${actionNames.join(', ')}) and the name of its object`)
  for (const field of ['namespace', 'digest', 'uid', 'reason'] as const)
    if (request[field] !== undefined && typeof request[field] !== 'string') throw badRequest(`${field} must be a text`)
  if (request.generation !== undefined && !Number.isInteger(request.generation)) throw badRequest('generation must be an integer')
  if (destructiveActions.has(request.action)) {
    if (request.confirmation !== request.name) throw badRequest(`type the name of the object to confirm: expected "${request.name}"`)
    requireRecentSignIn(session, request.action)
  }
  session.activeMs = Date.now()
  return { ok: true, ...(await carryOut(await actionSources(call), request)) } as const
}

async function actionSources({ session, client, options: { projections }, visibility, tasks }: Call): Promise<ActionSources> {
  return { client: await client(), user: session.user.name, projections, visibility, tasks }
}

async function actOnMany(call: Call): Promise<BulkResult> {
  const {
    session,
    options: { projections, onError },
    visibility,
  } = call
  const request = (await call.body()) as BulkRequest
  if (!bulkActionNames.includes(request.action)) throw badRequest(`the body must have an action of ${bulkActionNames.join(', ')}`)
  if (typeof (request.filter ?? '') !== 'string' || !isListOfKeys(request.stacks))
    throw badRequest('the body must have a filter, which is a text, or stacks, which is a list of objects with a key')
  const visible = await visibility.of('stacks', () => [...projections.tables.stacks.values()].map(({ namespace }) => namespace))
  const rows = matchingStacks(projections, request, visible, Date.now())
  if (rows.length !== request.expected)
    throw new StatusError('Conflict', `${rows.length} Stacks match now, and ${request.expected} did when you looked: look again`)
  if (rows.length > maxBulk) throw badRequest(`at most ${maxBulk} Stacks at a time, got ${rows.length}: use a narrower filter`)
  session.activeMs = Date.now()
  const sources = await actionSources(call)
  const results: BulkResult['results'][number][] = []
  const left = [...rows].reverse()
  const worker = async () => {
    for (let row = left.pop(); row; row = left.pop()) {
      const { key, namespace, name, activeRun } = row
      try {
        if (request.action === 'cancel' && activeRun === undefined) throw new StatusError('Conflict', `stack/${name} has no active Run`)
        const target = request.action === 'cancel' ? (activeRun as string) : name
        const { message } = await carryOut(sources, { action: request.action, namespace, name: target })
        results.push({ key, ok: true, message })
      } catch (error) {
        const body = errorBody(error)
        if (!body) onError(error)
        results.push({ key, ok: false, ...(body ?? failedBody) })
      }
    }
  }
  await Promise.all(Array.from({ length: bulkAtATime }, worker))
  return { results: results.sort((a, b) => (a.key < b.key ? -1 : 1)) }
}

const isListOfKeys = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every(each => typeof (each as { key?: unknown } | null)?.key === 'string'))
