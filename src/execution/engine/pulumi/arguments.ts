import { join } from 'node:path'
import type { RunOptions } from '../../../api/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'

/** Options of every command that previews or changes a stack. */
export const commonOptions = ['--non-interactive', '--color', 'never', '--suppress-permalink=true', '--suppress-progress'] as const

/** What a Run does, and to which state. */
export type Operation = {
  readonly intent: PlanResult['intent']
  /** Of the Run. */
  readonly run?: RunOptions | undefined
  readonly isInState: (urn: string) => boolean
}

/**
 * What a preview and the update that follows it have in common. Each value is in one argument with its option, so that nothing in it is another
 * option.
 *
 * Targets of the Stack do not restrict a destruction: when the Stack is deleted, nothing of it remains. Nor does it replace what does not exist yet,
 * which the CLI would reject.
 */
export function operationOptions(
  { spec, sourceRoot }: Pick<EngineContext, 'spec' | 'sourceRoot'>,
  { intent, run = {}, isInState }: Operation,
): string[] {
  const { pulumi = {} } = spec
  const isUpdate = intent === 'apply'
  const targets = selectedTargets({ spec }, intent, run)
  const replaced = [...(pulumi.replace ?? []).filter(isInState), ...(run.replace ?? [])]
  // Without either the project file decides (`options.refresh`).
  const refreshes = intent === 'refresh' ? undefined : (run.refresh ?? pulumi.refresh)
  return [
    ...(targets ?? []).map(urn => `--target=${urn}`),
    ...(pulumi.targetDependents && targets ? ['--target-dependents'] : []),
    ...(isUpdate ? [...new Set(replaced)].map(urn => `--replace=${urn}`) : []),
    ...(refreshes === undefined ? [] : [`--refresh=${refreshes}`]),
    ...(pulumi.runProgram && (!isUpdate || refreshes) ? ['--run-program'] : []),
    ...(isUpdate ? (pulumi.policyPacks ?? []).map(path => `--policy-pack=${join(sourceRoot, path)}`) : []),
  ]
}

/** The resources to which an operation is restricted; undefined: all. Those of the Run replace those of the Stack. */
export const selectedTargets = (
  { spec }: Pick<EngineContext, 'spec'>,
  intent: PlanResult['intent'],
  { targets }: RunOptions = {},
): readonly string[] | undefined => targets ?? (intent === 'destroy' ? undefined : spec.pulumi?.targets)

/** Options that do not change what a command does to the stack. */
export function executionOptions({ spec }: Pick<EngineContext, 'spec'>, isPreview: boolean, intent: PlanResult['intent']): string[] {
  const { parallel, continueOnError } = spec.pulumi ?? {}
  return [
    ...(parallel === undefined ? [] : [`--parallel=${parallel}`]),
    ...(continueOnError && !isPreview && intent !== 'refresh' ? ['--continue-on-error'] : []),
  ]
}
