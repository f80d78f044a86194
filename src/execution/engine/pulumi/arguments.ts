import { join } from 'node:path'
import type { RunOptions } from '../../../api/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'

/** Options of every command that previews or changes a stack. */
export const commonOptions = ['--non-interactive', '--color', 'never', '--suppress-permalink=true', '--suppress-progress'] as const

/**
 * What a preview and the update that follows it have in common. Each value is in one argument with its option, so that nothing in it is another
 * option.
 */
export function operationOptions(
  { spec, sourceRoot }: Pick<EngineContext, 'spec' | 'sourceRoot'>,
  intent: PlanResult['intent'],
  { targets, replace, refresh }: RunOptions = {},
): string[] {
  const { pulumi = {} } = spec
  const isUpdate = intent === 'apply'
  const replaced = [...(pulumi.replace ?? []), ...(replace ?? [])]
  // Without either the project file decides (`options.refresh`).
  const refreshes = intent === 'refresh' ? undefined : (refresh ?? pulumi.refresh)
  return [
    ...(targets ?? pulumi.targets ?? []).map(urn => `--target=${urn}`),
    ...(pulumi.targetDependents && (targets ?? pulumi.targets) ? ['--target-dependents'] : []),
    ...(isUpdate ? replaced.map(urn => `--replace=${urn}`) : []),
    ...(refreshes === undefined ? [] : [`--refresh=${refreshes}`]),
    ...(pulumi.runProgram && (!isUpdate || refreshes) ? ['--run-program'] : []),
    ...(isUpdate ? (pulumi.policyPacks ?? []).map(path => `--policy-pack=${join(sourceRoot, path)}`) : []),
  ]
}

/** Options that do not change what a command does to the stack. */
export function executionOptions({ spec }: Pick<EngineContext, 'spec'>, isPreview: boolean, intent: PlanResult['intent']): string[] {
  const { parallel, continueOnError } = spec.pulumi ?? {}
  return [
    ...(parallel === undefined ? [] : [`--parallel=${parallel}`]),
    ...(continueOnError && !isPreview && intent !== 'refresh' ? ['--continue-on-error'] : []),
  ]
}
