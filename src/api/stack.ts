import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { duration, isolationLevels, planSummary, priorityClasses } from './shared.ts'

/** `>= 1.9, < 2`: comma-separated, each an operator (=, !=, >, >=, <, <=, ~>; none is =) and a version of up to three numbers. */
const versionConstraintPattern =
  '^\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*(,\\s*(=|!=|>=?|<=?|~>)?\\s*v?\\d+(\\.\\d+){0,2}\\s*)*$'

export const engineNames = ['terraform', 'opentofu', 'manifests', 'command'] as const
export type EngineName = (typeof engineNames)[number]

/** Inline files together may be this long; more belongs in a git repository. */
export const maxInlineBytes = 524_288

const inlineSource = Type.Object(
  {
    files: Type.Record(Type.String(), Type.String(), {
      description: `File contents by relative path, at most ${maxInlineBytes} bytes together. Paths may not be absolute or contain "..".`,
      minProperties: 1,
    }),
  },
  { description: 'The files themselves.' },
)

const pathSource = Type.Object(
  {
    path: Type.String({ minLength: 1, description: 'An absolute directory on the worker, below one of its --allow-path roots.' }),
  },
  { description: 'A directory of the worker machine, copied for each Run.' },
)

const gitSource = Type.Object(
  {
    url: Type.String({ minLength: 1, description: 'https://, ssh:// or file:// URL, or git@host:path.' }),
    branch: Type.Optional(Type.String({ minLength: 1, description: 'Follow this branch. Default: the repository’s HEAD.' })),
    tag: Type.Optional(Type.String({ minLength: 1, description: 'Use this tag.' })),
    commit: Type.Optional(Type.String({ pattern: '^[0-9a-f]{40}([0-9a-f]{24})?$', description: 'Use exactly this commit (full hash).' })),
    directory: Type.Optional(Type.String({ description: 'Directory in the repository. Default: its root.' })),
    secretRef: Type.Optional(
      Type.Object(
        { name: Type.String({ minLength: 1 }) },
        { description: 'Secret in the namespace of the Stack with username and password, or ssh-privatekey (and known_hosts).' },
      ),
    ),
  },
  { description: 'A git repository, at a commit, tag or branch.' },
)

const source = Type.Object(
  {
    inline: Type.Optional(inlineSource),
    path: Type.Optional(pathSource),
    git: Type.Optional(gitSource),
    interval: Type.Optional(
      duration({ default: defaults.sourceInterval, description: 'How often to look for a new revision of a path or a git branch.' }),
    ),
  },
  { description: 'Where the files come from: exactly one of inline, path, git.' },
)

const variablesFrom = Type.Object(
  {
    stackRef: Type.Optional(
      Type.Object(
        {
          name: Type.String({ minLength: 1, description: 'A Stack in the same namespace; implies dependsOn.' }),
          outputs: Type.Optional(
            Type.Record(Type.String(), Type.String(), {
              description: 'Output name to variable name. Default: every output under its own name.',
            }),
          ),
        },
        { description: 'Outputs of another Stack.' },
      ),
    ),
    secretRef: Type.Optional(
      Type.Object({ name: Type.String({ minLength: 1 }) }, { description: 'Every key of a Secret; values are masked in logs.' }),
    ),
    configMapRef: Type.Optional(Type.Object({ name: Type.String({ minLength: 1 }) }, { description: 'Every key of a ConfigMap.' })),
  },
  { description: 'Variables from exactly one of stackRef, secretRef, configMapRef.' },
)

const commandStep = (what: string) =>
  Type.Optional(
    Type.Array(Type.String(), { minItems: 1, description: `${what} A program and its arguments; no shell unless you name one.` }),
  )

const quantity = (description: string) => Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$', description })

const isolation = Type.Object(
  {
    level: Type.Optional(
      Type.Enum(isolationLevels, {
        default: 'Process',
        description:
          'Process: a process group with a directory, HOME and environment of its own. Sandbox: bubblewrap; sees only its own directory, the system’s programs and its own processes. Pod: a Pod of its own. Only workers that can give it get the Run.',
      }),
    ),
    network: Type.Optional(Type.Enum(['Host', 'None'], { default: 'Host', description: 'None: no network at all; needs level Sandbox.' })),
  },
  { description: 'What the engine may see and reach; see docs/isolation.md for what each level protects from.' },
)

const resources = Type.Object(
  {
    cpu: Type.Optional(quantity('CPUs, such as 1.5 or 500m. Kept only where cgroup v2 may be written.')),
    memory: Type.Optional(quantity('Such as 512Mi. A Run that needs more is ended with reason OutOfMemory.')),
    pids: Type.Optional(Type.Integer({ minimum: 1, description: 'Processes at once.' })),
    disk: Type.Optional(quantity('What the Run’s directory may hold, /tmp and HOME included, such as 2Gi.')),
    autoRaise: Type.Optional(
      Type.Object(
        { memory: quantity('Up to this much.') },
        { description: 'After OutOfMemory the next try gets twice the memory, up to this; otherwise such a Run is not tried again.' },
      ),
    ),
  },
  { description: 'What a Run may use; time is limited by timeout. Who keeps each limit is said in the Run’s status.isolation.' },
)

const spec = Type.Object({
  engine: Type.Enum([...engineNames], { description: 'What does the work.' }),
  source,
  variables: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Variables by name; any JSON value.' })),
  variablesFrom: Type.Optional(Type.Array(variablesFrom, { description: 'More variables; later entries win, `variables` wins over all.' })),
  env: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
        value: Type.Optional(Type.String()),
        secretKeyRef: Type.Optional(Type.Object({ name: Type.String({ minLength: 1 }), key: Type.String({ minLength: 1 }) })),
      }),
      {
        description: 'Environment of the engine: a value, or a key of a Secret.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      },
    ),
  ),
  dependsOn: Type.Optional(
    Type.Array(Type.Object({ name: Type.String({ minLength: 1 }) }), {
      description: 'Stacks of the same namespace that must be Ready first; on deletion the order is reversed.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    }),
  ),
  approval: Type.Optional(
    Type.Enum(['Auto', 'Manual'], { default: 'Auto', description: 'Manual: a person approves each plan that changes something.' }),
  ),
  drift: Type.Optional(
    Type.Enum(['Correct', 'Report', 'Off'], {
      default: 'Correct',
      description: 'At each interval: Correct applies again, Report sets the condition Drifted, Off does nothing.',
    }),
  ),
  interval: Type.Optional(duration({ description: 'How often to check for drift (±10% jitter). Default: never.' })),
  suspend: Type.Optional(Type.Boolean({ default: false, description: 'Start no new Run; what runs may finish.' })),
  deletion: Type.Optional(
    Type.Enum(['Destroy', 'Orphan'], {
      default: 'Destroy',
      description: 'When the Stack is deleted: Destroy what it made first, or leave it (Orphan).',
    }),
  ),
  retry: Type.Optional(
    Type.Object(
      {
        limit: Type.Optional(
          Type.Integer({ minimum: 0, default: defaults.retryLimit, description: 'Retries after a failed Run, until something changes.' }),
        ),
        initial: Type.Optional(
          duration({ default: defaults.retryInitial, description: 'Wait before the first retry; doubles each time.' }),
        ),
        max: Type.Optional(duration({ default: defaults.retryMax, description: 'The longest wait.' })),
      },
      { description: 'What happens after a failed Run.' },
    ),
  ),
  priorityClass: Type.Optional(
    Type.Enum([...priorityClasses], {
      description:
        'Class of its Runs in the queue. Default by cause: Interactive when a person asked or approved, Drift for drift checks, else Change.',
    }),
  ),
  priority: Type.Optional(
    Type.Integer({
      default: 0,
      minimum: -1000,
      maximum: 1000,
      description: 'Higher starts first among Runs of the same tenant and class; it takes nothing from other tenants.',
    }),
  ),
  concurrencyKey: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      description: 'Runs of one tenant with the same key share a limit, such as those that work in one provider account.',
    }),
  ),
  concurrencyLimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      default: defaults.concurrencyLimit,
      description: 'A Run with a concurrencyKey starts while fewer than so many with this key are running.',
    }),
  ),
  placement: Type.Optional(
    Type.Object(
      {
        workerLabels: Type.Optional(
          Type.Record(Type.String(), Type.String(), { description: 'Labels that the Worker must have, such as zone or hardware.' }),
        ),
        engineVersion: Type.Optional(
          Type.String({
            pattern: versionConstraintPattern,
            description: 'Versions of the engine that will do, such as ">= 1.9, < 2" or "~> 1.11"; all parts must hold.',
          }),
        ),
      },
      { description: 'Which Workers of the pool will do.' },
    ),
  ),
  onChange: Type.Optional(
    Type.Enum(['Finish', 'Cancel'], {
      default: 'Finish',
      description:
        'When the Stack, its source or its inputs change while a Run is under way: let it finish, or interrupt it. A Run that only waits is always replaced.',
    }),
  ),
  timeout: Type.Optional(duration({ default: defaults.timeout, description: 'A Run that takes longer is interrupted and Failed.' })),
  isolation: Type.Optional(isolation),
  resources: Type.Optional(resources),
  pool: Type.Optional(Type.String({ default: defaults.pool, minLength: 1, description: 'The WorkerPool whose Workers run this Stack.' })),
  state: Type.Optional(
    Type.Enum(['Managed', 'External'], {
      default: 'Managed',
      description: 'Managed: Oarlock keeps state and lock. External: the backend in your own files is used as it is.',
    }),
  ),
  historyLimit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: defaults.historyLimit, description: 'Ended Runs to keep, with their logs.' }),
  ),
  command: Type.Optional(
    Type.Object(
      {
        plan: commandStep('Says what would change; exit 0: nothing, exit 2: something.'),
        apply: commandStep('Makes it so. Writes outputs as a JSON object to the file named by OARLOCK_OUTPUTS.'),
        destroy: commandStep('Takes it away.'),
      },
      { description: 'For engine command; apply is required there.' },
    ),
  ),
  manifests: Type.Optional(
    Type.Object(
      {
        namespace: Type.Optional(Type.String({ minLength: 1, description: 'For objects that name none. Default: that of the Stack.' })),
        prune: Type.Optional(Type.Boolean({ default: true, description: 'Delete what the Stack applied before and no longer names.' })),
        wait: Type.Optional(Type.Boolean({ default: true, description: 'Wait until everything is Current (kstatus).' })),
        waitTimeout: Type.Optional(duration({ default: '5m', description: 'How long to wait.' })),
        kubeconfigSecretRef: Type.Optional(
          Type.Object(
            { name: Type.String({ minLength: 1 }), key: Type.Optional(Type.String({ default: 'kubeconfig', minLength: 1 })) },
            { description: 'The cluster to apply to. Default: the one that holds the Stack.' },
          ),
        ),
      },
      { description: 'For engine manifests.' },
    ),
  ),
  terraform: Type.Optional(
    Type.Object(
      { parallelism: Type.Optional(Type.Integer({ minimum: 1, maximum: 256, description: 'Default: 10.' })) },
      { description: 'For engines terraform and opentofu.' },
    ),
  ),
})

const status = Type.Object({
  observedGeneration: Type.Optional(Type.Integer({ description: 'The generation of the spec that this status is about.' })),
  conditions: Type.Optional(conditionsSchema),
  lastRunNumber: Type.Optional(
    Type.Integer({ description: 'Number of the newest Run. It is also that Run’s epoch and part of its name (invariants 1 and 3).' }),
  ),
  lastRun: Type.Optional(
    Type.Object(
      {
        name: Type.String(),
        type: Type.String(),
        phase: Type.String(),
        reason: Type.String(),
        finishedAt: Type.Optional(Type.String({ format: 'date-time' })),
      },
      { description: 'The newest Run.' },
    ),
  ),
  applied: Type.Optional(
    Type.Object(
      {
        generation: Type.Integer(),
        revision: Type.String(),
        inputsDigest: Type.String(),
        at: Type.String({ format: 'date-time' }),
        runName: Type.String(),
      },
      { description: 'What stands: the inputs of the last Apply that succeeded.' },
    ),
  ),
  plan: Type.Optional(
    Type.Object(
      {
        digest: Type.String(),
        runName: Type.String(),
        generation: Type.Integer(),
        revision: Type.String(),
        inputsDigest: Type.String(),
        ...planSummary,
      },
      { description: 'The newest plan that waits for approval.' },
    ),
  ),
  checkedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When a Run last compared the world with the Stack.' })),
  failures: Type.Optional(Type.Integer({ description: 'Failed Runs in a row for the present inputs.' })),
  sameFailure: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Of the reason and the message, without what differs from Run to Run.' }),
        count: Type.Integer({ description: 'Runs in a row that failed like this, whatever the revision.' }),
        generation: Type.Integer({ description: 'The generation they were made for; another one starts anew.' }),
      },
      { description: 'How its Runs fail, if they keep failing the same way.' },
    ),
  ),
  nextRunAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the next retry or drift check is due.' })),
  handledRequest: Type.Optional(Type.String({ description: 'The value of oarlock.dev/requested-run that was last acted on.' })),
  outputs: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Outputs that are not secret. All of them are in the Secret <stack>-outputs.',
    }),
  ),
  outputsDigest: Type.Optional(Type.String({ description: 'Changes when any output changes, secret ones included.' })),
  resources: Type.Optional(Type.Integer({ description: 'How many resources the Stack manages.' })),
})

/** What infrastructure should be. See docs/reference/stack.md, generated from this file. */
export const stackResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Stack',
  plural: 'stacks',
  scope: 'Namespaced',
  description: 'What infrastructure should be: an engine, a source, variables, and when and how to run.',
  shortNames: ['stk'],
  categories: ['oarlock'],
  spec,
  status,
  // The first ones fit into 80 columns with `-A`; what is long comes last: kubectl pads every column but that one.
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
export type StackSource = Static<typeof source>
export type VariablesFrom = Static<typeof variablesFrom>
export type Stack = ObjectOf<typeof stackResource>

/** The schema of a Stack's spec; a Run freezes a copy of it. */
export const stackSpecSchema = spec
