import type { Static } from 'typebox'
import { type DurationDistribution, durationSampler, ProfileError, type WorkPhase, workPhases } from '../../api/index.ts'
import { Type, toStructuralSchema } from '../../kubernetes/object/index.ts'
import { pruneUnknown, validateSchema } from '../../kubernetes/schema/index.ts'

const timesField = (description: string) => Type.Optional(Type.Unknown({ description }))

const schema = Type.Object({
  phases: Type.Optional(
    Type.Object(
      {
        preparing: timesField('Fetching sources and dependencies.'),
        planning: timesField('Planning; the last phase of a drift check.'),
        applying: timesField('Applying; only in Runs of changes.'),
      },
      { description: 'Service time of each phase of a Run.' },
    ),
  ),
  failureShare: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Share of all Runs that fail; they are retried with the default retry of a Stack.',
    }),
  ),
  changeShare: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Share of the Runs of changes that have changes to apply.' }),
  ),
  changesPerStackPerDay: Type.Optional(Type.Number({ minimum: 0, description: 'How often a Stack changes.' })),
  stacksPerChange: Type.Optional(
    Type.Number({ minimum: 1, description: 'Mean number of Stacks of a tenant that one commit changes (geometric distribution).' }),
  ),
  changesByHour: Type.Optional(
    Type.Array(Type.Number({ minimum: 0 }), {
      minItems: 24,
      maxItems: 24,
      description: 'Weight of each hour of the day, from midnight.',
    }),
  ),
  workerStart: timesField('Time from the decision to start a worker until it is ready.'),
  price: Type.Optional(
    Type.Object(
      {
        currency: Type.Optional(Type.String({ minLength: 1 })),
        perWorkerHour: Type.Optional(Type.Number({ minimum: 0, description: 'Price of a worker, with all its slots.' })),
        perPodHour: Type.Optional(
          Type.Number({ minimum: 0, description: 'Price of a dedicated Pod for one Stack. Default: the price of a worker.' }),
        ),
      },
      { description: 'Prices per hour.' },
    ),
  ),
})

type ProfileFile = Static<typeof schema>

/** Properties of the Runs of a fleet, with defaults applied. Times are strings, as in the file, so that a profile can be posted to a thread. */
export type Profile = {
  /** A missing phase takes no time. */
  readonly phases: Readonly<Partial<Record<WorkPhase, DurationDistribution>>>
  readonly failureShare: number
  readonly changeShare: number
  readonly changesPerStackPerDay: number
  readonly stacksPerChange: number
  readonly changesByHour: readonly number[]
  readonly workerStart: DurationDistribution
  readonly price: { readonly currency: string; readonly perWorkerHour: number; readonly perPodHour: number }
}

const nights = [1, 1, 1, 1, 1, 1, 2, 4]
const officeHours = [8, 12, 14, 14, 10, 12, 14, 14, 12, 8]
const evenings = [4, 3, 2, 2, 1, 1]

/**
 * The default: Stacks of a few dozen cloud resources, commits mostly in office hours, workers that are Pods with 1 CPU and 2 GB at on-demand prices,
 * on nodes that have their image. It is an assumption, not a measurement; users should supply their own profile.
 */
export const defaultProfile: Profile = {
  phases: {
    preparing: { p0: '500ms', p50: '3s', p99: '20s' },
    planning: { p0: '3s', p50: '20s', p90: '1m', p99: '4m' },
    applying: { p0: '2s', p50: '30s', p90: '4m', p99: '15m' },
  },
  failureShare: 0.03,
  changeShare: 1,
  changesPerStackPerDay: 1,
  stacksPerChange: 3,
  changesByHour: [...nights, ...officeHours, ...evenings],
  workerStart: { p0: '3s', p50: '8s', p99: '30s' },
  price: { currency: 'USD', perWorkerHour: 0.05, perPodHour: 0.05 },
}

const structure = toStructuralSchema(schema, 'profile')

/**
 * Validates a profile and applies {@link defaultProfile}; if `phases` is given, omitted phases take no time. Profiles of `oarlock hollow` are
 * accepted too.
 *
 * @throws {ProfileError} if it has unknown fields, or values of the wrong type or out of range.
 */
export function parseSimulationProfile(value: unknown): Profile {
  const problems = validateSchema(structure, value, 'profile').map(({ field, message }) => `${field}: ${message}`)
  for (const path of pruneUnknown(structure, value, 'profile').pruned) {
    problems.push(`${path}: unknown field; docs/simulate.md lists all fields`)
  }
  if (problems.length > 0) throw new ProfileError(problems.join('; '))
  const { phases, workerStart, price, ...rest } = value as ProfileFile
  if (rest.changesByHour?.every(weight => weight === 0))
    throw new ProfileError('profile.changesByHour: at least one weight must be greater than 0')
  const { currency = defaultProfile.price.currency, perWorkerHour = defaultProfile.price.perWorkerHour } = price ?? {}
  return {
    ...defaultProfile,
    ...rest,
    ...(phases && { phases: Object.fromEntries(workPhases.map(phase => [phase, validTimes(`profile.phases.${phase}`, phases[phase])])) }),
    ...(workerStart !== undefined && { workerStart: validTimes('profile.workerStart', workerStart) ?? defaultProfile.workerStart }),
    price: { currency, perWorkerHour, perPodHour: price?.perPodHour ?? perWorkerHour },
  }
}

function validTimes(field: string, value: unknown): DurationDistribution | undefined {
  durationSampler(field, value)
  return value as DurationDistribution | undefined
}

/** Draws the service time of a Run in milliseconds. `random` returns 0 ≤ x < 1. */
export type ServiceTime = (random: () => number) => number

/** Service times by cause. A drift check plans; a change plans, and applies with the probability `changeShare`. */
export function serviceTimesOf({ phases, changeShare }: Profile): { readonly DriftCheck: ServiceTime; readonly Change: ServiceTime } {
  const preparing = durationSampler('profile.phases.preparing', phases.preparing)
  const planning = durationSampler('profile.phases.planning', phases.planning)
  const applying = durationSampler('profile.phases.applying', phases.applying)
  const plan: ServiceTime = random => preparing(random()) + planning(random())
  return { DriftCheck: plan, Change: random => plan(random) + (random() < changeShare ? applying(random()) : 0) }
}
