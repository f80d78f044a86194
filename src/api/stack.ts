import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { recoveryFields } from './recovery-fields.ts'
import { count, duration, isolationLevels, networks, planSummary, priorityClasses } from './shared.ts'
import { sourceSchema, variablesFromSchema } from './stack-source.ts'

/** `>= 1.9, < 2`: comma-separated, each an operator (=, !=, >, >=, <, <=, ~>; default =) and a version of up to three numbers. */
const versionConstraintPattern =
  '^\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*(,\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*)*$'

export const engineNames = ['terraform', 'opentofu', 'manifests', 'command'] as const
export type EngineName = (typeof engineNames)[number]

const commandStep = (what: string) =>
  Type.Optional(Type.Array(Type.String(), { minItems: 1, description: `${what} A program and its arguments, executed without a shell.` }))

const quantity = (description: string) => Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$', description })

const isolation = Type.Object(
  {
    level: Type.Optional(
      Type.Enum(isolationLevels, {
        description:
          'Isolation level. Process: a process group with its own directory, HOME and environment. Sandbox: bubblewrap; the engine sees only its own directory, system programs and its own processes. Pod: a separate Pod. The Run is assigned only to workers that support the level. Default: the minimumIsolation of the Tenant and the WorkerPool; without one Sandbox if network is Private or None, else Process.',
      }),
    ),
    network: Type.Optional(
      Type.Enum(networks, {
        description:
          'Network of the engine. Private: its own, from which it connects to other machines, not to the loopback interface of the worker. None: no network. Both require level Sandbox, whose default is Private. Host: the network of the worker, the default of the other levels; at level Sandbox the WorkerPool must allow it (spec.allowedNetworks).',
      }),
    ),
  },
  { description: 'Isolation of the engine. docs/isolation.md describes what each level protects against.' },
)

const resources = Type.Object(
  {
    cpu: Type.Optional(
      quantity('CPU limit, such as 1.5 or 500m. Enforced only where the worker can write to cgroup v2. Default: no limit.'),
    ),
    memory: Type.Optional(quantity('Memory limit, such as 512Mi. A Run that exceeds it fails with reason OutOfMemory. Default: no limit.')),
    pids: Type.Optional(Type.Integer({ minimum: 1, description: 'Maximum number of processes. Default: no limit.' })),
    disk: Type.Optional(quantity('Limit for the directory of the Run including /tmp and HOME, such as 2Gi. Default: no limit.')),
    autoRaise: Type.Optional(
      Type.Object(
        { memory: quantity('Maximum that the memory limit is raised to, such as 4Gi.') },
        {
          description:
            'Doubles the memory limit after OutOfMemory and retries, up to a maximum. If unset, a Run that fails with OutOfMemory is not retried.',
        },
      ),
    ),
  },
  {
    description: 'Resource limits of a Run; its time is limited by timeout. status.isolation of the Run shows how each limit is enforced.',
  },
)

const spec = Type.Object({
  engine: Type.Enum([...engineNames], { description: 'Engine that executes the Runs.' }),
  source: sourceSchema,
  variables: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Variables by name. A value can be any JSON value.' }),
  ),
  variablesFrom: Type.Optional(
    Type.Array(variablesFromSchema, {
      description: 'Further sources of variables. Later entries override earlier ones, and `variables` overrides all of them.',
    }),
  ),
  env: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
          description: 'Name of the variable. Names that start with OARLOCK_ are reserved.',
        }),
        value: Type.Optional(Type.String({ description: 'Value of the variable.' })),
        secretKeyRef: Type.Optional(
          Type.Object(
            {
              name: Type.String({ minLength: 1, description: 'Name of a Secret in the namespace of the Stack.' }),
              key: Type.String({ minLength: 1, description: 'Key in the Secret.' }),
            },
            { description: 'Uses a key of a Secret as the value. The value is masked in logs.' },
          ),
        ),
      }),
      {
        description: 'Environment variables of the engine. Exactly one of value and secretKeyRef must be set.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      },
    ),
  ),
  dependsOn: Type.Optional(
    Type.Array(Type.Object({ name: Type.String({ minLength: 1 }) }), {
      description: 'Stacks in the same namespace that must be Ready before a Run starts. They are destroyed after this Stack.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    }),
  ),
  approval: Type.Optional(
    Type.Enum(['Auto', 'Manual'], {
      default: 'Auto',
      description:
        'Auto: changes are applied without approval. Manual: a user must approve each plan that contains changes. In a namespace with the label oarlock.dev/approval every Stack is Manual.',
    }),
  ),
  drift: Type.Optional(
    Type.Enum(['Correct', 'Report', 'Off'], {
      default: 'Correct',
      description: 'What happens at each interval. Correct: apply again. Report: plan, and set the condition Drifted. Off: no check.',
    }),
  ),
  interval: Type.Optional(duration({ description: 'How often the Stack is checked for drift, with ±10% jitter. Default: never.' })),
  suspend: Type.Optional(
    Type.Boolean({ default: false, description: 'Suspends the Stack: no new Run starts, and an active Run finishes.' }),
  ),
  deletion: Type.Optional(
    Type.Enum(['Destroy', 'Orphan'], {
      default: 'Destroy',
      description: 'What happens to the resources when the Stack is deleted. Destroy: they are destroyed first. Orphan: they are kept.',
    }),
  ),
  deletionProtection: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Rejects the deletion of the Stack. While it is true, nothing is destroyed, also not with its namespace.',
    }),
  ),
  retry: Type.Optional(
    Type.Object(
      {
        limit: Type.Optional(
          Type.Integer({
            minimum: 0,
            default: defaults.retryLimit,
            description: 'Maximum number of retries after a failed Run. A change of the Stack or its inputs resets the count.',
          }),
        ),
        initial: Type.Optional(
          duration({ default: defaults.retryInitial, description: 'Delay before the first retry. It doubles with each further retry.' }),
        ),
        max: Type.Optional(duration({ default: defaults.retryMax, description: 'Maximum delay between retries.' })),
      },
      { description: 'Retries of failed Runs.' },
    ),
  ),
  priorityClass: Type.Optional(
    Type.Enum([...priorityClasses], {
      description:
        'Priority class of the Runs in the queue. Default: Interactive for a Run that a user requested or approved, Drift for a drift check, Change for any other Run.',
    }),
  ),
  priority: Type.Optional(
    Type.Integer({
      default: 0,
      minimum: -1000,
      maximum: 1000,
      description: 'Priority among queued Runs of the same tenant and class; the highest starts first. It does not affect other tenants.',
    }),
  ),
  concurrencyKey: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      description: 'Groups Runs of one tenant under a shared concurrencyLimit, for example all Runs that use one provider account.',
    }),
  ),
  concurrencyLimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      default: defaults.concurrencyLimit,
      description: 'Maximum number of concurrent Runs with the same concurrencyKey.',
    }),
  ),
  placement: Type.Optional(
    Type.Object(
      {
        workerLabels: Type.Optional(
          Type.Record(Type.String(), Type.String(), { description: 'Labels that a Worker must have, such as zone or hardware.' }),
        ),
        engineVersion: Type.Optional(
          Type.String({
            pattern: versionConstraintPattern,
            description: 'Version constraint for the engine, such as ">= 1.9, < 2" or "~> 1.11". All comparisons must hold.',
          }),
        ),
      },
      { description: 'Restricts which Workers of the pool may execute the Runs.' },
    ),
  ),
  onChange: Type.Optional(
    Type.Enum(['Finish', 'Cancel'], {
      default: 'Finish',
      description:
        'What happens to an active Run when the Stack, its source or its inputs change. Finish: it continues. Cancel: it is interrupted. A queued Run is always superseded.',
    }),
  ),
  timeout: Type.Optional(
    duration({ default: defaults.timeout, description: 'Maximum duration of a Run. A Run that takes longer is interrupted and fails.' }),
  ),
  isolation: Type.Optional(isolation),
  resources: Type.Optional(resources),
  pool: Type.Optional(
    Type.String({ default: defaults.pool, minLength: 1, description: 'Name of the WorkerPool whose Workers execute the Runs.' }),
  ),
  state: Type.Optional(
    Type.Enum(['Managed', 'External'], {
      default: 'Managed',
      description:
        'Managed: Oarlock stores the state and manages the lock; source files with a backend or cloud block are rejected (BackendInFiles). External: the backend that the source files configure is used unchanged.',
    }),
  ),
  historyLimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100,
      default: defaults.historyLimit,
      description: 'Number of ended Runs that are kept with their logs.',
    }),
  ),
  command: Type.Optional(
    Type.Object(
      {
        plan: commandStep('Command that plans. Exit code 0 means no changes, 2 means changes.'),
        apply: commandStep('Command that applies. It writes outputs as a JSON object to the file named by OARLOCK_OUTPUTS.'),
        destroy: commandStep('Command that destroys.'),
      },
      { description: 'Options of engine command. apply is required for that engine.' },
    ),
  ),
  manifests: Type.Optional(
    Type.Object(
      {
        namespace: Type.Optional(
          Type.String({ minLength: 1, description: 'Namespace for objects without one. Default: the namespace of the Stack.' }),
        ),
        prune: Type.Optional(
          Type.Boolean({
            default: true,
            description: 'Deletes objects that the Stack applied previously and that are no longer in the source.',
          }),
        ),
        wait: Type.Optional(Type.Boolean({ default: true, description: 'Waits until all objects are Current by the rules of kstatus.' })),
        waitTimeout: Type.Optional(duration({ default: '5m', description: 'Maximum time to wait.' })),
        kubeconfigSecretRef: Type.Optional(
          Type.Object(
            {
              name: Type.String({ minLength: 1, description: 'Name of a Secret in the namespace of the Stack.' }),
              key: Type.Optional(Type.String({ default: 'kubeconfig', minLength: 1, description: 'Key in the Secret.' })),
            },
            { description: 'Secret with a kubeconfig for the target cluster. Default: the cluster of the Stack.' },
          ),
        ),
      },
      { description: 'Options of engine manifests.' },
    ),
  ),
  terraform: Type.Optional(
    Type.Object(
      {
        parallelism: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 256, description: 'Maximum number of concurrent operations. Default: 10.' }),
        ),
        initEnvironment: Type.Optional(
          Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), {
            maxItems: 64,
            description:
              'Names of variables with credentials that init gets too, for example for modules in a bucket. Without it, values from Secrets and from the engineEnvironment of the pool reach only commands that use providers or the backend; TF_*, GIT_* and SSH_* always reach init.',
          }),
        ),
      },
      { description: 'Options of engines terraform and opentofu.' },
    ),
  ),
})

const status = Type.Object({
  observedGeneration: Type.Optional(count('The generation of the spec that this status describes.')),
  conditions: Type.Optional(conditionsSchema),
  lastRunNumber: Type.Optional(
    count('Number of the newest Run, which is the epoch of that Run and part of its name (invariants 1 and 3).'),
  ),
  ...recoveryFields,
  lastRun: Type.Optional(
    Type.Object(
      {
        name: Type.String({ description: 'Name of the Run.' }),
        type: Type.String({ description: 'Type of the Run.' }),
        phase: Type.String({ description: 'Phase of the Run as last observed.' }),
        reason: Type.String({ description: 'Why the Run was created.' }),
        finishedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the Run ended.' })),
      },
      { description: 'The newest Run.' },
    ),
  ),
  applied: Type.Optional(
    Type.Object(
      {
        generation: count('Generation of the Stack.'),
        revision: Type.String({ description: 'Revision of the source.' }),
        inputsDigest: Type.String({ description: 'Digest of the outputs, Secrets and ConfigMaps that were used.' }),
        at: Type.String({ format: 'date-time', description: 'When the Run ended.' }),
        runName: Type.String({ description: 'Name of the Run.' }),
        specDigest: Type.Optional(Type.String({ description: 'Digest of the fields of the spec that affect the infrastructure.' })),
        overwrittenBy: Type.Optional(
          Type.String({
            description: 'Name of a later Run that did not succeed and may have applied part of other inputs. The next Apply removes it.',
          }),
        ),
      },
      { description: 'The inputs of the last successful Apply.' },
    ),
  ),
  plan: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the plan; the value to approve.' }),
        runName: Type.String({ description: 'Name of the Run that created the plan.' }),
        specDigest: Type.Optional(
          Type.String({ description: 'Digest of the fields of the spec that affect the plan or how it is applied.' }),
        ),
        generation: count('Generation of the Stack.'),
        revision: Type.String({ description: 'Revision of the source.' }),
        inputsDigest: Type.String({ description: 'Digest of the outputs, Secrets and ConfigMaps that were used.' }),
        ...planSummary,
      },
      { description: 'The newest plan that awaits approval.' },
    ),
  ),
  approval: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the approved plan.' }),
        user: Type.Optional(Type.String({ description: 'The user who approved, as the API server authenticated it.' })),
        at: Type.String({
          format: 'date-time',
          description: 'When it was approved; on a kube-apiserver, when the controller first saw it.',
        }),
        expiresAt: Type.Optional(
          Type.String({ format: 'date-time', description: 'When it expires, also if --approval-timeout of the controller changes later.' }),
        ),
        requestedAt: Type.Optional(Type.String({ description: 'The annotation oarlock.dev/approved-at. A new value is a new approval.' })),
        runName: Type.Optional(
          Type.String({
            description: 'Name of the Run whose plan it approves. Unset if that plan did not await approval: then it is void.',
          }),
        ),
      },
      { description: 'The last approval. It is valid for one plan, once, until it expires.' },
    ),
  ),
  checkedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When a Run last compared the resources with the Stack.' })),
  failures: Type.Optional(count('Number of consecutive failed Runs with the current inputs.')),
  sameFailure: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the reason and the message, without parts that differ with each Run.' }),
        count: count('Number of consecutive Runs that failed this way, regardless of their revision.'),
        generation: count('Generation of the Stack whose failed Runs were counted. A new generation resets the count.'),
      },
      { description: 'The failure that consecutive Runs have in common.' },
    ),
  ),
  nextRunAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the next retry or drift check is due.' })),
  handledRequest: Type.Optional(Type.String({ description: 'The last handled value of the annotation oarlock.dev/requested-run.' })),
  outputs: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Outputs that are not secret. The Secret <stack>-outputs contains all of them.',
    }),
  ),
  outputsDigest: Type.Optional(Type.String({ description: 'Digest of all outputs, including secret ones.' })),
  resources: Type.Optional(count('Number of resources that the Stack manages.')),
})

/** The desired state of infrastructure. docs/reference/stack.md is generated from this file. */
export const stackResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Stack',
  plural: 'stacks',
  scope: 'Namespaced',
  description: 'Stack is the desired state of infrastructure: an engine, a source, variables, and when and how to run.',
  shortNames: ['stk'],
  categories: ['oarlock'],
  spec,
  status,
  // The default columns fit into 80 characters with `-A`. The longest column is last, because kubectl pads every other column.
  printerColumns: [
    { name: 'Engine', jsonPath: '.spec.engine' },
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Resources', jsonPath: '.status.resources', type: 'integer', priority: 1 },
    { name: 'Run', jsonPath: '.status.lastRun.name', priority: 1 },
    { name: 'Message', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
})

export type StackSpec = Static<typeof spec>
export type StackStatus = Static<typeof status>
export type Stack = ObjectOf<typeof stackResource>

/** The schema of a Stack's spec. A Run contains a frozen copy of the spec. */
export const stackSpecSchema = spec
