export const apiGroup = 'oarlock.dev'
export const apiVersion = 'v1alpha1'

/** The namespace of objects that belong to no user: Leases of workers and controllers. */
export const systemNamespace = 'oarlock-system'

/** The Lease that decides which controller leads, in the system namespace. */
export const controllerLeaseName = 'oarlock-controller'

/** The ring of `oarlock controller --shards`, in the system namespace: which process works on which Stack. */
export const stackShardsName = 'oarlock-stacks'

/** The namespace of the ServiceAccounts of workers that joined, and of nothing else: a user who may create tokens there can act as any worker. */
export const workersNamespace = 'oarlock-workers'

/**
 * The ServiceAccount of worker Pods, in the namespace of the Pods. Others, such as those with a cloud identity, begin with its name and a hyphen:
 * policies, which restrict what RBAC grants to workers, recognise a worker by it, with or without a Pod.
 */
export const podAccountName = 'oarlock-worker'
export const isPodAccountName = (name: string): boolean => name === podAccountName || name.startsWith(`${podAccountName}-`)

export const labels = {
  /** On a Run: the name of its Stack. */
  stack: 'oarlock.dev/stack',
  /** On a Worker and its Lease: the name of its WorkerPool. */
  pool: 'oarlock.dev/pool',
  /** On a Worker and its Lease: a number that follows from its name. Where several dispatchers share workers, each watches some of these (`worker-bucket.ts`). */
  workerBucket: 'oarlock.dev/worker-bucket',
  /** On a Tenant, a WorkerPool, a Worker or a Node: the name of the partition that it belongs to. The server of a partition sets it on its Workers. */
  partition: 'oarlock.dev/partition',
  /** On the Worker of a Pod: its own name, which is never used again. Workers that have ended are selected by it, to be deleted together. */
  worker: 'oarlock.dev/worker',
  /** On the Pod of a worker that joins from a Deployment: the name of its WorkerPool. */
  poolDeployment: 'oarlock.dev/pool-deployment',
  /** On the Pod of a worker: whether it has a Run, `true` or `false`. */
  busy: 'oarlock.dev/busy',
  /** On a Namespace: whether its Stacks require approval, whatever their spec says ({@link approvalPolicyOf}). */
  approval: 'oarlock.dev/approval',
} as const

/** FourEyes: no user approves a plan that follows from their own change or request. */
export type ApprovalPolicy = 'Required' | 'FourEyes'

/** What the label `oarlock.dev/approval` of a Namespace requires. A value that is not known, such as a typing error, counts as the strictest. */
export const approvalPolicyOf = (namespaceLabels: Readonly<Record<string, string>> | undefined): ApprovalPolicy | undefined => {
  const value = namespaceLabels?.[labels.approval]
  return value === undefined || value === 'Required' ? value : 'FourEyes'
}

export const annotations = {
  /** On a Stack: the digest of the plan that a user approved. If it is not the latest plan, it has no effect and the condition reports it. */
  approvedPlan: 'oarlock.dev/approved-plan',
  /** On a Stack: the user who approved the plan. The embedded server sets it, an admission policy elsewhere accepts only the user of the request. */
  approvedBy: 'oarlock.dev/approved-by',
  /** On a Stack: when the plan was approved. The embedded server sets it; elsewhere it only tells two approvals of the same plan apart. */
  approvedAt: 'oarlock.dev/approved-at',
  /** On a Stack: the digest of the plan that a user rejected. If it is not the plan that awaits approval, it has no effect. */
  rejectedPlan: 'oarlock.dev/rejected-plan',
  /** On a Stack: the user who rejected the plan, set and checked as `approvedBy`. */
  rejectedBy: 'oarlock.dev/rejected-by',
  /** On a Stack: when the plan was rejected, set as `approvedAt`. */
  rejectedAt: 'oarlock.dev/rejected-at',
  /** On a Stack: why the user rejected the plan, for others to read. */
  rejectionReason: 'oarlock.dev/rejection-reason',
  /** On a Stack: a JSON list of the authors of its spec: the users who changed it after the version that was applied before. The embedded server sets it, no other server can. */
  changedBy: 'oarlock.dev/changed-by',
  /** On a Stack: a JSON list of the users who requested a Run whose plan may still be approved. Set by the embedded server only. */
  requestedBy: 'oarlock.dev/requested-by',
  /** On a Stack that is being deleted: a JSON list of the users who deleted it, or changed it since. The embedded server sets it, no other server can. */
  deletedBy: 'oarlock.dev/deleted-by',
  /** On a Stack: the digest of the plan of destruction that a user has confirmed. Its deletion executes exactly that plan, or waits for a confirmation of another one. */
  destroyPlan: 'oarlock.dev/destroy-plan',
  /** On a Stack: `Current` destroys it with its present source and inputs, and not with those that were applied last. */
  destroySource: 'oarlock.dev/destroy-source',
  /** On a Stack: each new value requests a Run, see `run-request.ts`. */
  requestedRun: 'oarlock.dev/requested-run',
  /** On a Stack from a backup: the value of `status.restored.at`, when a user has reviewed it. Another value has no effect. */
  acceptedRestore: 'oarlock.dev/accepted-restore',
  /** On a Stack: the lineage of a state of existing resources that a user has stored, after `pending:` until it is stored. Deleting the Stack destroys them, also before its first Run. */
  importedState: 'oarlock.dev/imported-state',
  /** On the Lease of a worker Pod: the status that the worker registers with, as JSON (`lease-registration.ts`). */
  workerStatus: 'oarlock.dev/worker-status',
  /** On the Lease of a process: its controllers with their reconciles and latency, as JSON (`controller-figures.ts`). */
  controllerFigures: 'oarlock.dev/controller-figures',
  /** On the Worker of a Pod: the digest of the template of its pool that the Pod was created from. */
  podTemplate: 'oarlock.dev/pod-template',
  /** On a Namespace: `true` lets the embedded server delete it although Stacks in it have resources. */
  forceDelete: 'oarlock.dev/force-delete',
} as const

/** On an object that the engine `manifests` applied: its Stack as `namespace/name`, so that two Stacks do not apply one object in turn. */
export const ownerAnnotation = 'oarlock.dev/stack'

/**
 * Finalizer of a Run from its assignment on. Deleting an assigned Run cancels it, and the object remains until its engine has stopped and
 * the status of its subject includes its end. Otherwise the next Run of its subject could start while the engine still runs (invariant 1),
 * or have the same epoch (invariant 3).
 */
export const assignedFinalizer = 'oarlock.dev/assigned'

/** Set on a Stack from its first reconcile until its resources are destroyed or orphaned on purpose. */
export const stackFinalizer = 'oarlock.dev/finalizer'

/** The values of omitted fields, used by the schemas and by the code that reads them. */
export const defaults = {
  pool: 'default',
  /** Workers of a pool. */
  poolMax: 4,
  timeout: '1h',
  retryLimit: 5,
  retryInitial: '5s',
  retryMax: '10m',
  /** How long an approval is valid. */
  approvalTimeout: '24h',
  historyLimit: 5,
  sourceInterval: '1m',
  /** Maximum number of concurrent Runs with the same `concurrencyKey`. */
  concurrencyLimit: 1,
  tenantWeight: 1,
  /** Time after which the past usage of a tenant counts half in fair-share scheduling. */
  fairShareHalfLifeMs: 15 * 60_000,
  /** How long a draining worker waits for its Runs before it interrupts them. */
  drainGrace: '10m',
  /** How long an idle worker is kept: starting one for the next Run takes time. */
  warmIdleTimeout: '5m',
  oneShotIdleTimeout: '1m',
  /** How long a Lease must be unchanged, by the observer's monotonic clock, before it counts as expired (invariant 2). */
  leaseDurationMs: 10_000,
  /** A Lease that claims a longer duration expires after this one. */
  maxLeaseDurationMs: 5 * 60_000,
} as const

/** The Secret with all outputs of a Stack, and its type. */
export const outputsSecretName = (stack: string): string => `${stack}-outputs`
export const outputsSecretType = 'oarlock.dev/outputs'
/** On that Secret: a JSON list of the sensitive outputs. Stacks that use the outputs mask these, and only these. */
export const sensitiveOutputsAnnotation = 'oarlock.dev/sensitive-outputs'

/** Undefined for a Secret that was edited by someone else: then all outputs are sensitive. */
export function sensitiveOutputsIn(metadata: {
  readonly annotations?: Readonly<Record<string, string>> | undefined
}): string[] | undefined {
  try {
    const names: unknown = JSON.parse(metadata.annotations?.[sensitiveOutputsAnnotation] ?? 'null')
    return Array.isArray(names) ? names.map(String) : undefined
  } catch {
    return undefined
  }
}
