import type { Stack } from '../../../api/index.ts'
import { withNewerSerial } from '../../../stores/state/index.ts'
import type { StackResources, StateDiff, YamlProblem } from '../../protocol/index.ts'
import { lineDiff } from './line-diff.ts'
import { lineFinder, type ParsedYaml, parseStackYaml, problemsOf, type Rejection, type StackName, stackYaml } from './stack-yaml.ts'
import { diffStates } from './state-diff.ts'
import { resourcesIn } from './state-resources.ts'

type Written = Pick<Stack, 'metadata' | 'spec'>

/** What takes long for a large state or a long text. All are pure: {@link TaskRunner} calls them in a thread. */
export const tasks = {
  /** As JSON in UTF-8: with long values a difference is as large as the states. */
  diffStates(from: string, to: string, options: { readonly withValues: boolean } & Pick<StateDiff, 'from' | 'to'>): Uint8Array {
    const { withValues, ...versions } = options
    return Buffer.from(JSON.stringify({ ...versions, ...diffStates(from, to, { withValues }) }))
  },
  resourcesIn(content: string, limit: number): Pick<StackResources, 'format' | 'resources' | 'total' | 'pending'> {
    return resourcesIn(content, limit)
  },
  withNewerSerial,
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
export type TaskReply = { readonly result: unknown } | { readonly error: Error }

/** Never throws: an error of a task does not end its thread. */
export function performTask({ name, args }: TaskRequest): TaskReply {
  try {
    return { result: (tasks[name] as (...all: readonly unknown[]) => unknown)(...args) }
  } catch (error) {
    return { error: error as Error }
  }
}
