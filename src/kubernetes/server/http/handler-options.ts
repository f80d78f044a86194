import type { ResourceRoute } from '../../object/route.ts'
import type { ConnectionLimiter } from '../../util/index.ts'
import type { Auditor } from '../audit/index.ts'
import type {
  AdmissionPlugin,
  Authorizer,
  DeletionPlugin,
  FrontProxy,
  OpenIdDocument,
  ReviewedTokens,
  Tokens,
  User,
} from '../auth/index.ts'
import type { Discovery } from '../discovery/index.ts'
import type { Fairness } from '../fairness/index.ts'
import type { KubeletProxy } from '../kubelet/index.ts'
import type { RequestMetrics, ServerMetrics } from '../metrics/index.ts'
import type { GatewayWatch, Services } from '../rest/index.ts'
import type { Reviews } from '../review/index.ts'
import type { HttpRequest, Mount } from './handler-types.ts'
import type { HealthChecks } from './health.ts'

export type HandlerOptions = {
  services: Services
  discovery: Discovery
  tokens: Tokens
  reviewedTokens: Pick<ReviewedTokens, 'review'> | undefined
  frontProxy: FrontProxy | undefined
  authorize: Authorizer
  reviews: Reviews
  kubelets: KubeletProxy
  /** By table. */
  admissionPlugins: ReadonlyMap<string, AdmissionPlugin>
  /** By table. */
  deletionPlugins: ReadonlyMap<string, DeletionPlugin>
  openId: (path: string) => OpenIdDocument | undefined
  mounts: readonly Mount[]
  fairness: Fairness
  connections: Pick<ConnectionLimiter, 'admit'>
  requestMetrics: RequestMetrics
  metrics: ServerMetrics
  health: HealthChecks
  auditor: Auditor | undefined
  onInternalError: (error: unknown, request: HttpRequest) => void
}

/** An authenticated request for a resource. */
export type ResourceRequest = {
  readonly route: ResourceRoute
  readonly query: URLSearchParams | undefined
  readonly user: User
  readonly request: HttpRequest
  /** Whether a gateway has sent it, and what it asks of its watch. */
  readonly isProxied?: boolean
  readonly gatewayWatch?: GatewayWatch | undefined
}

/** An authenticated request for any other path. */
export type PathRequest = {
  readonly path: string
  readonly query: URLSearchParams | undefined
  readonly user: User
  readonly request: HttpRequest
}
