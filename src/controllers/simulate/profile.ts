import type { Static } from 'typebox'
import { type DurationDistribution, durationSampler, ProfileError, type WorkPhase, workPhases } from '../../api/index.ts'
import { Type, toStructuralSchema } from '../../kubernetes/object/index.ts'
import { pruneUnknown, validateSchema } from '../../kubernetes/schema/index.ts'

const timesField = (description: string) => Type.Optional(Type.Unknown({ description }))

const schema = Type.Object({
  phases: Type.Optional(
    Type.Object(
      {
        preparing: timesField('Sources and dependencies.'),
        planning: timesField('Looking what there is to do: all of a drift check.'),
        applying: timesField('Doing it; only in Runs of changes.'),
      },
      { description: 'How long a worker is busy with each phase of a Run.' },
    ),
  ),
  failureShare: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'Of all Runs; they are tried again as Stacks say.' })),
  changeShare: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Of the Runs of changes: those that have something to apply.' }),
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
  workerStart: timesField('From asking for a worker until it takes a Run.'),
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

type ProfileFile = Static<typeof schema>

/** How the Runs of a fleet are, with what a file left out filled in. Times are text, as in the file, so that threads can be told. */
export type Profile = {
  /** A phase that is missing takes no time. */
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
 * Without a profile: Stacks of some dozen resources of a cloud, commits mostly in office hours, workers that are Pods on a node that has
 * their image, of one CPU and 2 GB at what clouds ask for that on demand. An assumption and not a measurement: say what your own are.
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
 * Reads a profile: what it leaves out is as in {@link defaultProfile}; of its `phases`, those left out take no time. A profile of
 * `oarlock hollow` is one, too.
 *
 * @throws {ProfileError} if it has unknown fields, values of the wrong type or out of their range.
 */
export function parseProfile(value: unknown): Profile {
  const problems = validateSchema(structure, value, 'profile').map(({ field, message }) => `${field}: ${message}`)
  for (const path of pruneUnknown(structure, value, 'profile').pruned) {
    problems.push(`${path}: there is no such field; docs/simulate.md lists them`)
  }
  if (problems.length > 0) throw new ProfileError(problems.join('; '))
  const { phases, workerStart, price, ...rest } = value as ProfileFile
  if (rest.changesByHour?.every(weight => weight === 0))
    throw new ProfileError('profile.changesByHour: one weight at least must be more than 0')
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

/** Draws how long a worker is busy with a Run, in milliseconds. */
export type ServiceTime = (chance: () => number) => number

/** By cause of a Run. A drift check looks; a change looks, and has something to apply as often as the profile says. */
export function serviceTimesOf({ phases, changeShare }: Profile): { readonly DriftCheck: ServiceTime; readonly Change: ServiceTime } {
  const preparing = durationSampler('profile.phases.preparing', phases.preparing)
  const planning = durationSampler('profile.phases.planning', phases.planning)
  const applying = durationSampler('profile.phases.applying', phases.applying)
  const look: ServiceTime = chance => preparing(chance()) + planning(chance())
  return { DriftCheck: look, Change: chance => look(chance) + (chance() < changeShare ? applying(chance()) : 0) }
}
