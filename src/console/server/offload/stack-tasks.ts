import type { Stack } from '../../../api/index.ts'
import { type Status, StatusError } from '../../../kubernetes/object/index.ts'
import { isDeeperThan } from '../../../stores/pulumi/index.ts'
import { withNewerSerial } from '../../../stores/state/index.ts'
import type { ResourceDetails, StackResources, StateDiff, YamlProblem } from '../../protocol/index.ts'
import { lineDiff } from './line-diff.ts'
import { attributesOf } from './resource-attributes.ts'
import { lineFinder, type ParsedYaml, parseStackYaml, problemsOf, type Rejection, type StackName, stackYaml } from './stack-yaml.ts'
import { diffStates } from './state-diff.ts'
import { resourcesIn } from './state-resources.ts'

type Written = Pick<Stack, 'metadata' | 'spec'>

/** States of engines have a few dozen levels. The cost of dividing a state grows with the square of them. */
const maxLevels = 500

/** What takes long for a large state or a long text. All are pure: {@link TaskRunner} calls them in a process. */
export const tasks = {
  /** As JSON in UTF-8: with long values a difference is as large as the states. */
  diffStates(from: string, to: string, options: { readonly withValues: boolean } & Pick<StateDiff, 'from' | 'to'>): Uint8Array {
    rejectDeep(from, to)
    const { withValues, ...versions } = options
    return Buffer.from(JSON.stringify({ ...versions, ...diffStates(from, to, { withValues }) }))
  },
  resourcesIn(content: string, limit: number): Pick<StackResources, 'format' | 'resources' | 'total' | 'pending'> {
    rejectDeep(content)
    return resourcesIn(content, limit)
  },
  attributesOf(content: string, address: string): Omit<ResourceDetails, 'version'> | undefined {
    rejectDeep(content)
    return attributesOf(content, address)
  },
  withNewerSerial(content: string, current: string): string {
    rejectDeep(content, current)
    return withNewerSerial(content, current)
  },
  stackYaml,
  parseStackYaml(text: string, stack: StackName): Pick<ParsedYaml, 'object' | 'problems'> {
    const { object, problems } = parseStackYaml(text, stack)
    return { ...(object && { object }), problems }
  },
  problemsOf(rejection: Rejection, text: string): YamlProblem[] {
    return problemsOf(rejection, lineFinder(text))
  },
  diffStacks(before: Written, after: Written) {
    return lineDiff(stackYaml(before), stackYaml(after))
  },
}

export type Tasks = typeof tasks
export type TaskName = keyof Tasks
export type TaskRequest = { readonly name: TaskName; readonly args: readonly unknown[] }
/** A StatusError would lose its class on the way between processes. */
export type TaskReply = { readonly result: unknown } | { readonly status: Status }

/** @throws what a task throws, but for a StatusError, and a SyntaxError: that is of a state, which need not be what an engine writes. */
export function performTask({ name, args }: TaskRequest): TaskReply {
  try {
    return { result: (tasks[name] as (...all: readonly unknown[]) => unknown)(...args) }
  } catch (error) {
    if (error instanceof StatusError) return { status: error.toStatus() }
    if (error instanceof SyntaxError) return { status: unreadable.toStatus() }
    throw error
  }
}

/** Without the message of the parser, which quotes the text: it may have secrets. */
const unreadable = new StatusError('Invalid', 'the stored state is not a JSON object: inspect it with "oarlock state pull"')

function rejectDeep(...states: readonly string[]): void {
  if (states.every(state => !isDeeperThan(state, maxLevels))) return
  throw new StatusError('RequestEntityTooLarge', `the state nests deeper than ${maxLevels} levels: use "oarlock state pull"`)
}
