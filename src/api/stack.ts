import type { Static } from 'typebox'
import { defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { ansibleSchema } from './ansible-options.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { pulumiSchema } from './pulumi-options.ts'
import { duration, isolationLevels, networks, priorityClasses } from './shared.ts'
import { sourceSchema, variablesFromSchema } from './stack-source.ts'
import { stackStatusSchema } from './stack-status.ts'

/** `>= 1.9, < 2`: comma-separated, each an operator (=, !=, >, >=, <, <=, ~>; default =) and a version of up to three numbers. */
const versionConstraintPattern =
  '^\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*(,\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*)*$'

export const engineNames = ['terraform', 'opentofu', 'pulumi', 'ansible', 'manifests', 'command'] as const
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
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Variables by name. A value can be any JSON value. With engine pulumi they are the configuration: a name without a colon belongs to the project.',
    }),
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
  serviceAccountName: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      pattern: '^oarlock-worker(-[-a-z0-9.]+)?$',
      description:
        'ServiceAccount of the Pods that execute the Runs, in the namespace of the Stack, for example with a cloud identity: `oarlock-worker` or a name that begins with `oarlock-worker-`. Only for a pool with podNamespace Stack. Default: that of the template of the pool.',
    }),
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
        installDependencies: Type.Optional(
          Type.Boolean({
            default: false,
            description:
              'Installs the packages of the project in the directory of the source before a command starts, once for all Runs of the Tenant or namespace on a machine that have the same inputs: npm, pnpm, yarn, bun, pip, uv, poetry or Go modules.',
          }),
        ),
        installEnvironment: Type.Optional(
          Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), {
            maxItems: 64,
            description:
              'Names of variables with credentials that the installation of dependencies gets too, for example for a private registry. Without it, values from Secrets and from the engineEnvironment of the pool reach only the commands.',
          }),
        ),
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
  pulumi: Type.Optional(pulumiSchema),
  ansible: Type.Optional(ansibleSchema),
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
  status: stackStatusSchema,
  // The default columns fit into 80 characters with reasons of up to 18 characters if the name has 34, or with `-A` if namespace and name have 21.
  // The longest column is last, because kubectl pads every other column.
  printerColumns: [
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Drifted', jsonPath: '.status.conditions[?(@.type=="Drifted")].status' },
    { name: 'Approval', jsonPath: '.status.conditions[?(@.type=="AwaitingApproval")].reason' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Engine', jsonPath: '.spec.engine', priority: 1 },
    { name: 'Resources', jsonPath: '.status.resources', type: 'integer', priority: 1 },
    { name: 'Run', jsonPath: '.status.lastRun.name', priority: 1 },
    { name: 'Message', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
})

export type StackSpec = Static<typeof spec>
export type StackStatus = Static<typeof stackStatusSchema>
export type Stack = ObjectOf<typeof stackResource>

/** The schema of a Stack's spec. A Run contains a frozen copy of the spec. */
export const stackSpecSchema = spec
