import type { Static } from 'typebox'
import { durationPattern, pruneUnknown, Type, toStructuralSchema, validateSchema } from '../kube/index.ts'
import { type Spread, spreadError } from './distribution.ts'

const duration = (description: string) => Type.Optional(Type.String({ pattern: durationPattern, description }))

const spread = (description: string) =>
  Type.Optional(
    Type.Object(
      {
        fixed: duration('Always the same.'),
        p50: duration('The median of a lognormal distribution; with p99.'),
        p99: duration('Its 99th percentile.'),
        quantiles: Type.Optional(
          Type.Record(Type.String(), Type.String({ pattern: durationPattern }), {
            description: 'What was measured: durations by share from "0" to "1", straight lines between them.',
          }),
        ),
      },
      { description },
    ),
  )

const schema = Type.Object({
  durations: Type.Optional(
    Type.Object(
      { DriftCheck: spread('Runs that find nothing to do.'), Change: spread('Runs of changes.') },
      { description: 'How long the engine works on a Run, by its cause.' },
    ),
  ),
  changesPerStackPerDay: Type.Optional(Type.Number({ minimum: 0, description: 'How often a Stack changes.' })),
  stacksPerChange: Type.Optional(
    Type.Number({ minimum: 1, description: 'How many Stacks of a tenant one commit changes, on average (geometric).' }),
  ),
  changesByHour: Type.Optional(
    Type.Array(Type.Number({ minimum: 0 }), {
      minItems: 24,
      maxItems: 24,
      description: 'A weight for each hour of the day, from midnight.',
    }),
  ),
  failureShare: Type.Optional(Type.Number({ minimum: 0, maximum: 0.9, description: 'Of all Runs; they are tried again as Stacks say.' })),
  workerStart: spread('From asking for a worker until it takes a Run.'),
  price: Type.Optional(
    Type.Object(
      {
        currency: Type.Optional(Type.String({ minLength: 1 })),
        perWorkerHour: Type.Optional(Type.Number({ minimum: 0, description: 'Of a worker, with all its slots.' })),
        perPodHour: Type.Optional(
          Type.Number({ minimum: 0, description: 'Of the pod that each Stack would have for itself. Default: as a worker.' }),
        ),
      },
      { description: 'What an hour costs.' },
    ),
  ),
})

/** What a profile file may say. */
export type ProfileFile = Static<typeof schema>

/** How the Runs of a fleet are, with what a file left out filled in. Times as text, such as `90s`. */
export type Profile = {
  readonly durations: { readonly DriftCheck: Spread; readonly Change: Spread }
  readonly changesPerStackPerDay: number
  readonly stacksPerChange: number
  readonly changesByHour: readonly number[]
  readonly failureShare: number
  readonly workerStart: Spread
  readonly price: { readonly currency: string; readonly perWorkerHour: number; readonly perPodHour: number }
}

const nights = [1, 1, 1, 1, 1, 1, 2, 4]
const officeHours = [8, 12, 14, 14, 10, 12, 14, 14, 12, 8]
const evenings = [4, 3, 2, 2, 1, 1]

/**
 * Without a profile: Stacks of some dozen resources of a cloud, commits mostly in office hours, workers that are Pods on a node that has
 * their image, of one CPU and 2 GB at what clouds ask for that on demand. An assumption and not a measurement: say what your own are.
 */
export const defaultProfile: Profile = {
  durations: { DriftCheck: { p50: '25s', p99: '4m' }, Change: { p50: '60s', p99: '15m' } },
  changesPerStackPerDay: 1,
  stacksPerChange: 3,
  changesByHour: [...nights, ...officeHours, ...evenings],
  failureShare: 0.03,
  workerStart: { p50: '8s', p99: '30s' },
  price: { currency: 'USD', perWorkerHour: 0.05, perPodHour: 0.05 },
}

/** A profile that cannot be used. `problems` has a line for each thing that is wrong. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('; '))
    this.problems = problems
  }
}

const structure = toStructuralSchema(schema, 'profile')

/**
 * Reads a profile: what it leaves out is as in {@link defaultProfile}.
 *
 * @throws {ProfileError} if it has unknown fields, values of the wrong type or out of their range.
 */
export function parseProfile(value: unknown): Profile {
  const problems = validateSchema(structure, value, 'profile').map(({ field, message }) => `${field}: ${message}`)
  for (const path of pruneUnknown(structure, value, 'profile').pruned) {
    problems.push(`${path}: there is no such field; docs/simulate.md lists them`)
  }
  if (problems.length > 0) throw new ProfileError(problems)
  const { durations, price, ...rest } = value as ProfileFile
  const { currency = defaultProfile.price.currency, perWorkerHour = defaultProfile.price.perWorkerHour } = price ?? {}
  const profile: Profile = {
    ...defaultProfile,
    ...rest,
    durations: { ...defaultProfile.durations, ...durations },
    price: { currency, perWorkerHour, perPodHour: price?.perPodHour ?? perWorkerHour },
  }
  const found = [
    spreadError(profile.durations.DriftCheck, 'profile.durations.DriftCheck'),
    spreadError(profile.durations.Change, 'profile.durations.Change'),
    spreadError(profile.workerStart, 'profile.workerStart'),
    profile.changesByHour.every(weight => weight === 0) ? 'profile.changesByHour: one weight at least must be more than 0' : undefined,
  ].filter(problem => problem !== undefined)
  if (found.length > 0) throw new ProfileError(found)
  return profile
}
