import type { ShardSettings } from './options.ts'

/** What all members of a ring must have in common. */
export type OperatorReport = {
  /** Durations, as text for people; not `slots`, which may change by a rolling update. */
  readonly settings: string
  /** Names of the sharded controllers; those of two versions of one operator overlap. */
  readonly controllers: readonly string[]
}

/** More are not reported: the same of each member, because they are in order. */
const maxControllers = 100
const maxTextLength = 253

export function operatorReportOf(
  { leaseDurationMs, renewDeadlineMs }: Pick<ShardSettings, 'leaseDurationMs' | 'renewDeadlineMs'>,
  controllers: readonly string[],
): OperatorReport {
  return {
    settings: `leaseDurationMs ${leaseDurationMs}, renewDeadlineMs ${renewDeadlineMs}`,
    controllers: controllers
      .filter(name => name.length <= maxTextLength)
      .sort()
      .slice(0, maxControllers),
  }
}

/** Returns undefined for what is not such a report. */
export function parseOperatorReport(value: unknown): OperatorReport | undefined {
  const { settings, controllers } = (value ?? {}) as Record<string, unknown>
  if (!isText(settings) || !Array.isArray(controllers) || controllers.length > maxControllers || !controllers.every(isText))
    return undefined
  return { settings, controllers }
}

/** Why a member cannot belong to the same operator; undefined if it can. */
export function differenceOf(own: OperatorReport, other: OperatorReport): string | undefined {
  if (own.settings !== other.settings) return `has ${other.settings}, this process has ${own.settings}: all members need the same`
  const isDisjoint = !other.controllers.some(name => own.controllers.includes(name))
  if (!isDisjoint || own.controllers.length === 0 || other.controllers.length === 0) return undefined
  return `runs the controllers ${other.controllers.join(', ')}, this process ${own.controllers.join(', ')}: each operator needs a ring of its own`
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxTextLength
}
