import type { IncomingMessage } from 'node:http'
import { HttpError } from '../../stores/http/index.ts'
import { type PulumiBackend, PulumiBackendError, type PulumiStackId } from './pulumi-backend.ts'
import type { BodyReader, JsonBody } from './request-body.ts'
import type { RouteParameters, RouteTable } from './router.ts'
import type { TrackedUpdate, UpdateRegistry } from './update-registry.ts'

/** Shared by all requests of a handler. */
export type HandlerContext = {
  readonly backend: PulumiBackend
  readonly updates: UpdateRegistry
  readonly bodies: BodyReader
  readonly maxRefusedBytes: number
  readonly maxCheckpointBytes: number
  readonly deltaCutoffBytes: number | undefined
  readonly testedCliVersions: readonly string[]
  /** Why nothing is written any more; undefined while the Run may write. */
  fence(): string | undefined
  createToken(): string
  createId(): string
  now(): number
  onError(error: unknown): void
}

/** One authorized request. */
export type RouteRequest = {
  readonly context: HandlerContext
  readonly req: IncomingMessage
  readonly parameters: RouteParameters
  readonly query: URLSearchParams
  readonly stack: PulumiStackId
  /** The base URL as the client named it. */
  readonly url: string
  readonly cliVersion: string | undefined
  /** On the routes of an update. */
  readonly tracked: TrackedUpdate | undefined
  /** Reads the body, and answers with what `work` returns. */
  withBody(work: (body: JsonBody) => Promise<RouteResponse>): Promise<RouteResponse>
}

/** JSON, or the bytes of JSON. */
export type RouteResponse = { readonly status: number; readonly body: unknown } | { readonly status: number; readonly bytes: Uint8Array }

export type Routes = RouteTable<(request: RouteRequest) => Promise<RouteResponse>>

export const ok = (body: unknown = {}): RouteResponse => ({ status: 200, body })

export const badRequest = (message: string): HttpError => new HttpError(400, 'BadRequest', message)
export const notFound = (message: string): HttpError => new HttpError(404, 'NotFound', message)
export const conflict = (message: string): HttpError => new HttpError(409, 'Conflict', message)
/** Final for the CLI: it stops the update. */
export const forbidden = (message: string): HttpError => new HttpError(403, 'Forbidden', message)

/** @throws {HttpError} 403 once the Run may not write any more. */
export function requireUnfenced(context: HandlerContext): void {
  const reason = context.fence()
  if (reason !== undefined) throw forbidden(reason)
}

/** After a call of the backend that was refused as fenced, the update may not write any more. */
export function refuseIfFenced({ updates }: HandlerContext, tracked: TrackedUpdate, error: unknown): void {
  if (!(error instanceof PulumiBackendError && error.code === 'Fenced')) return
  tracked.refuse('fenced', error.message)
  updates.end(tracked)
}
