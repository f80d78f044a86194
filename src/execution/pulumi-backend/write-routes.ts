import { sha256 } from '../../kubernetes/util/index.ts'
import { HttpError } from '../../stores/http/index.ts'
import { JournalBatchError, type RawJournalEntry, sliceMembers, splitJournalBatch } from '../../stores/pulumi/index.ts'
import { applyDelta } from './apply-delta.ts'
import { countField, textField, toObject } from './json-fields.ts'
import type { RefusedWrite } from './pulumi-backend.ts'
import type { JsonBody } from './request-body.ts'
import { badRequest, conflict, forbidden, ok, type RouteRequest, type RouteResponse, type Routes, refuseIfFenced } from './route-request.ts'
import { defineRoute } from './router.ts'
import type { TrackedUpdate } from './update-registry.ts'
import { refusalOf, requireTracked } from './update-routes.ts'

const updatePath = '/api/stacks/:organization/:project/:stack/update/:update'
/** The CLI sends at most 100, unless the user sets another number. */
const maxEntries = 10_000

/**
 * Writes of state. Each is answered after the backend has stored it (invariant 5), one after the other. Once an update is fenced, canceled or
 * complete they are answered 403, which makes the CLI stop, and the backend keeps what they contain.
 */
export const writeRoutes: Routes = [
  defineRoute(`PATCH ${updatePath}/journalentries`, 'update', request =>
    request.withBody(async body => {
      const entries = parseEntries(body)
      return await store(request, { kind: 'journalEntries', entries }, async ({ update }) => {
        if (entries.length > 0) await request.context.backend.appendJournalEntries(update, entries)
      })
    }),
  ),
  defineRoute(`PATCH ${updatePath}/checkpoint`, 'update', request =>
    request.withBody(async body => {
      const deployment = parseCheckpoint(body)
      // An invalidation, sent by old versions before they change resources: the stored state stays the newest.
      if (!deployment) return await store(request, undefined, async () => {})
      return await store(request, { kind: 'checkpoint', deployment }, async tracked => {
        tracked.base = undefined
        await request.context.backend.writeCheckpoint(tracked.update, deployment)
      })
    }),
  ),
  defineRoute(`PATCH ${updatePath}/checkpointverbatim`, 'update', request =>
    request.withBody(async ({ value, text }) => {
      const body = toObject(value)
      toObject(body.untypedDeployment, 'untypedDeployment')
      const sequence = countField(body, 'sequenceNumber')
      const deployment = Buffer.from(sliceMembers(text).get('untypedDeployment') ?? '')
      return await store(request, { kind: 'checkpoint', deployment }, async tracked => {
        await writeCheckpoint(request, tracked, deployment, sequence)
      })
    }),
  ),
  defineRoute(`PATCH ${updatePath}/checkpointdelta`, 'update', request =>
    request.withBody(async ({ value }) => {
      const body = toObject(value)
      const sequence = countField(body, 'sequenceNumber')
      const checksum = textField(body, 'checkpointHash').toLowerCase()
      // A refused delta is not kept: the CLI sends the whole checkpoint after it.
      return await store(request, undefined, async tracked => {
        const { base } = tracked
        // The CLI repeats a request whose answer it did not get.
        if (base?.sequence === sequence && sha256(base.bytes) === checksum) return
        const deployment = base && applyDelta(base.bytes, body.deploymentDelta, checksum, request.context.maxCheckpointBytes)
        if (!deployment) throw conflict('the delta does not apply to the stored checkpoint; send the whole checkpoint')
        await writeCheckpoint(request, tracked, deployment, sequence)
      })
    }),
  ),
]

async function writeCheckpoint({ context }: RouteRequest, tracked: TrackedUpdate, deployment: Uint8Array, sequence: number): Promise<void> {
  if (tracked.base && sequence < tracked.base.sequence) throw conflict('a newer checkpoint of the update is stored')
  // Without a base while it is uncertain which one is stored.
  tracked.base = undefined
  await context.backend.writeCheckpoint(tracked.update, deployment)
  tracked.base = { sequence, bytes: deployment }
}

/** Runs `write`, or has its content kept if the update may not write any more. */
async function store(
  request: RouteRequest,
  content: RefusedWrite | undefined,
  write: (tracked: TrackedUpdate) => Promise<void>,
): Promise<RouteResponse> {
  const tracked = requireTracked(request)
  if (tracked.update.isPreview) throw conflict('a preview does not write state')
  return await tracked.inOrder(async () => {
    const refusal = refusalOf(request, tracked)
    if (refusal !== undefined) {
      if (content) await keepRefused(request, tracked, content)
      throw forbidden(refusal)
    }
    try {
      await write(tracked)
    } catch (error) {
      // Before the next write of this update begins.
      refuseIfFenced(request.context, tracked, error)
      throw error
    }
    return ok()
  })
}

/** What was refused may be all that names a resource that exists. A failure does not change the answer. */
async function keepRefused({ context }: RouteRequest, tracked: TrackedUpdate, content: RefusedWrite): Promise<void> {
  // An update that never started has no CLI that created anything.
  if (tracked.state === 'created') return
  const parts = content.kind === 'checkpoint' ? [content.deployment] : content.entries.map(each => each.text)
  const size = parts.reduce((sum, part) => sum + part.length, 0)
  if (size === 0) return
  if (tracked.refusedBytes + size > context.maxRefusedBytes) {
    const limit = `at most ${context.maxRefusedBytes} bytes of refused writes of an update are kept`
    const message = `a refused write of ${size} bytes was dropped, because ${limit}: resources that it names may exist; further ones are not reported`
    if (!tracked.hasDropped) context.onError(new Error(message))
    tracked.hasDropped = true
    return
  }
  tracked.refusedBytes += size
  try {
    await context.backend.keepRefused(tracked.update, content)
  } catch (error) {
    context.onError(error)
  }
}

/** @throws {HttpError} 400 or 413 */
function parseEntries({ value, text }: JsonBody): RawJournalEntry[] {
  const { entries } = toObject(value)
  if (Array.isArray(entries) && entries.length > maxEntries)
    throw new HttpError(413, 'TooLarge', `the request has ${entries.length} entries, at most ${maxEntries} are allowed`)
  try {
    return splitJournalBatch(text, entries)
  } catch (error) {
    throw error instanceof JournalBatchError ? badRequest(error.message) : error
  }
}

/** The UntypedDeployment of a checkpoint; undefined for an invalidation. @throws {HttpError} 400 */
function parseCheckpoint({ value, text }: JsonBody): Buffer | undefined {
  const body = toObject(value)
  if (body.isInvalid === true) return undefined
  toObject(body.deployment, 'deployment')
  const version = countField(body, 'version')
  const features = body.features ?? []
  if (!Array.isArray(features) || features.some(each => typeof each !== 'string')) throw badRequest('features must be an array of texts')
  const featureText = features.length > 0 ? `"features":${JSON.stringify(features)},` : ''
  return Buffer.from(`{"version":${version},${featureText}"deployment":${sliceMembers(text).get('deployment')}}`)
}
