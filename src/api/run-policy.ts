import type { Static } from 'typebox'
import { compareQuantities, parseQuantity, Type } from '../kubernetes/object/index.ts'
import { type IsolationLevel, isolationLevels, type Network, networks, quantity } from './shared.ts'
import type { StackSpec } from './stack.ts'

/** What an administrator requires of Runs: fields of WorkerPool and Tenant, and of a Run that was assigned. */
export const runPolicyFields = {
  minimumIsolation: Type.Optional(
    Type.Enum(isolationLevels, {
      description:
        'Weakest isolation level that Runs may have, from weak to strong: Process, Sandbox, Pod. A Stack that sets no level gets this one. Default: Process.',
    }),
  ),
  allowedNetworks: Type.Optional(
    Type.Array(Type.Enum(networks), {
      maxItems: networks.length,
      'x-kubernetes-list-type': 'set',
      description:
        'Networks that Runs of level Sandbox may use. A Stack that sets none gets the first of Private, None and Host that is allowed. Default: Private and None for a WorkerPool, all for a Tenant.',
    }),
  ),
  maxResources: Type.Optional(
    Type.Object(
      {
        cpu: Type.Optional(
          Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?m?$', description: 'Maximum of spec.resources.cpu, such as 2 or 500m.' }),
        ),
        memory: Type.Optional(quantity({ description: 'Maximum of spec.resources.memory, and of autoRaise.memory, such as 2Gi.' })),
        pids: Type.Optional(Type.Integer({ minimum: 1, description: 'Maximum of spec.resources.pids.' })),
        disk: Type.Optional(quantity({ description: 'Maximum of spec.resources.disk, such as 10Gi.' })),
      },
      { description: 'Maximum limits of a Run. A Stack that sets no limit gets the maximum.' },
    ),
  ),
}

/** At level Process a program has the network of the machine, so a list without Host would promise what it does not do. */
export const runPolicyRules = [
  {
    rule: `!has(self.allowedNetworks) || 'Host' in self.allowedNetworks || (has(self.minimumIsolation) && self.minimumIsolation != 'Process')`,
    message: 'allowedNetworks without Host requires minimumIsolation Sandbox or Pod: at level Process a Run has the network of its machine',
  },
]

const runPolicySchema = Type.Object(runPolicyFields)
export type RunPolicy = Static<typeof runPolicySchema>

/** A policy and where it comes from, such as `Tenant team-a`, for messages. */
export type PolicySource = { readonly origin: string; readonly policy: RunPolicy }

type Resources = NonNullable<StackSpec['resources']>
type Requested = Pick<StackSpec, 'isolation' | 'resources'>

export type AppliedPolicy = {
  readonly isolation: { readonly level: IsolationLevel; readonly network: Network }
  readonly resources: Resources
  /** Empty: the Run is allowed. */
  readonly violations: readonly PolicyViolation[]
}

/** The message has the value of the field, what is required, by whom, and what to do. */
export type PolicyViolation = { readonly field: string; readonly message: string }

/**
 * Applies what administrators require to what a Stack sets: what it does not set gets a value that is allowed, what it sets otherwise is a
 * violation and left unchanged.
 */
export function applyPolicy({ isolation = {}, resources = {} }: Requested, sources: readonly PolicySource[]): AppliedPolicy {
  const violations: PolicyViolation[] = []
  const level = applyLevel(isolation, sources, violations)
  const network = applyNetwork(isolation.network, level, sources, violations)
  return { isolation: { level, network }, resources: applyMaximums(resources, sources, violations), violations }
}

/** What all of the policies allow. */
export function mergePolicies(policies: readonly RunPolicy[]): RunPolicy {
  const levels = policies.flatMap(({ minimumIsolation: level }) => (level === undefined ? [] : [level]))
  const lists = policies.flatMap(({ allowedNetworks: list }) => (list === undefined ? [] : [list]))
  const maxResources = mergeMaximums(policies.flatMap(({ maxResources: maximums }) => maximums ?? []))
  return {
    ...(levels.length > 0 && { minimumIsolation: levels.reduce(stronger) }),
    ...(lists.length > 0 && { allowedNetworks: networks.filter(network => lists.every(list => list.includes(network))) }),
    ...(Object.keys(maxResources).length > 0 && { maxResources }),
  }
}

const stronger = (a: IsolationLevel, b: IsolationLevel) => (isolationLevels.indexOf(a) > isolationLevels.indexOf(b) ? a : b)

function applyLevel(
  { level, network }: NonNullable<Requested['isolation']>,
  sources: readonly PolicySource[],
  violations: PolicyViolation[],
) {
  const { minimumIsolation: minimum = 'Process' } = mergePolicies(sources.map(({ policy }) => policy))
  // Only a sandbox has a network of its own.
  if (level === undefined) return stronger(minimum, network === undefined || network === 'Host' ? 'Process' : 'Sandbox')
  if (stronger(level, minimum) === level) return level
  const { origin } = sources.find(({ policy }) => policy.minimumIsolation === minimum)!
  violations.push({
    field: `spec.isolation.level`,
    message: `${level} is weaker than ${minimum}, which ${origin} requires (minimumIsolation); set ${minimum} or remove the field`,
  })
  return level
}

function applyNetwork(
  network: Network | undefined,
  level: IsolationLevel,
  sources: readonly PolicySource[],
  violations: PolicyViolation[],
): Network {
  if (level !== 'Sandbox') return network ?? 'Host'
  const { allowedNetworks: allowed = networks } = mergePolicies(sources.map(({ policy }) => policy))
  if (allowed.length === 0) {
    const lists = sources.flatMap(({ origin, policy }) =>
      policy.allowedNetworks ? `${origin}: ${formatList(policy.allowedNetworks)}` : [],
    )
    violations.push({
      field: `spec.isolation.network`,
      message: `no network is in allowedNetworks of each of ${lists.join('; ')}; let an administrator change one`,
    })
  } else if (network !== undefined && !allowed.includes(network)) {
    const { origin, policy } = sources.find(source => source.policy.allowedNetworks?.includes(network) === false)!
    violations.push({
      field: `spec.isolation.network`,
      message: `${network} is not allowed by ${origin} (allowedNetworks: ${formatList(policy.allowedNetworks ?? [])}); set ${allowed.join(' or ')}, or remove the field`,
    })
  }
  return network ?? allowed[0] ?? 'None'
}

const formatList = (list: readonly string[]) => list.join(', ') || 'none'

function applyMaximums(resources: Resources, sources: readonly PolicySource[], violations: PolicyViolation[]): Resources {
  const maximums = mergeMaximums(sources.flatMap(({ policy }) => policy.maxResources ?? []))
  for (const field of limitFields) {
    const [value, maximum] = [resources[field], maximums[field]]
    if (value === undefined || maximum === undefined || !exceeds(value, maximum)) continue
    const { origin } = sources.find(({ policy }) => policy.maxResources?.[field] === maximum)!
    violations.push({
      field: `spec.resources.${field}`,
      message: `${value} is more than ${maximum}, which ${origin} allows (maxResources.${field}); set at most ${maximum} or remove the field`,
    })
  }
  const { autoRaise } = resources
  const { memory } = maximums
  const isRaiseLimited = autoRaise !== undefined && memory !== undefined && exceeds(autoRaise.memory, memory)
  return { ...maximums, ...resources, ...(isRaiseLimited && { autoRaise: { memory } }) }
}

const limitFields = ['cpu', 'memory', 'pids', 'disk'] as const

type Maximums = NonNullable<RunPolicy['maxResources']>

function mergeMaximums(all: readonly Maximums[]): Maximums {
  const merged: Maximums = {}
  for (const maximums of all) for (const field of limitFields) lower(merged, field, maximums[field])
  return merged
}

function lower<Field extends (typeof limitFields)[number]>(merged: Maximums, field: Field, maximum: Maximums[Field]): void {
  const present = merged[field]
  if (maximum !== undefined && (present === undefined || exceeds(present, maximum))) merged[field] = maximum
}

function exceeds(value: string | number, maximum: string | number): boolean {
  return compareQuantities(parseQuantity(`${value}`), parseQuantity(`${maximum}`)) > 0
}
