import { type Stack, stackResource } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { applyManifest } from '../apply-manifests.ts'
import { formatError, usageError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { explainRejection } from '../explain-rejection.ts'
import type { OutputFormat } from '../output/output-formats.ts'
import { objectName, serialize } from '../output/print-objects.ts'
import { type Manifest, readManifests } from '../read-manifests.ts'
import { whenReady } from '../stack-outcome.ts'

export type ApplyCommandOptions = AccessOptions & {
  filename: string[]
  force?: boolean
  dryRun?: boolean
  output?: OutputFormat
  wait: boolean
  timeout: string
}

/**
 * `oarlock apply -f …`: applies every object, also after one was rejected; with `--wait` it then waits until the Stacks are Ready. Returns the
 * exit code of the first problem.
 */
export async function apply(options: ApplyCommandOptions): Promise<number> {
  if (options.wait && options.dryRun) throw usageError('--wait and --dry-run exclude each other')
  const manifests = await readManifests(options.filename)
  return await withClient(options, async client => {
    const settings = {
      namespace: namespaceOf(client, options),
      force: options.force,
      dryRun: options.dryRun,
      mayBeNew: definesKinds(manifests),
    }
    const objects: unknown[] = []
    const stacks: Pick<Stack, 'metadata'>[] = []
    let exitCode = 0
    for (const manifest of manifests) {
      try {
        const { resource, object, outcome } = await applyManifest(client, manifest, settings)
        if (resource.kind === stackResource.kind && resource.group === stackResource.group) stacks.push(object)
        if (options.output === 'json' || options.output === 'yaml') objects.push(object)
        else if (options.output === 'name') print(objectName(resource, object.metadata.name))
        else print(`${objectName(resource, object.metadata.name)} ${outcome}${options.dryRun ? ' (dry run)' : ''}`)
      } catch (error) {
        const { message, details, exitCode: code, hint } = formatError(error)
        note(`${manifest.from}: ${message}`)
        for (const detail of [...details, ...explainRejection(manifest.object, error)]) note(`  ${detail}`)
        if (hint) note(`  hint: ${hint}`)
        exitCode ||= code
      }
    }
    if (options.output === 'json' || options.output === 'yaml') {
      print(await serialize(objects.length === 1 ? objects[0] : { apiVersion: 'v1', kind: 'List', items: objects }, options.output))
    }
    const endMs = performance.now() + parseDuration(options.timeout)
    for (const stack of options.wait ? stacks : []) {
      try {
        await whenReady(client, stack, Math.max(0, endMs - performance.now()))
        note(`stack/${stack.metadata.name} is Ready`)
      } catch (error) {
        const { message, exitCode: code, hint } = formatError(error)
        if (code === exitCodes.interrupted) throw error
        note(`oarlock: ${message}`)
        if (hint) note(`  hint: ${hint}`)
        exitCode ||= code
      }
    }
    return exitCode
  })
}

export const definesKinds = (manifests: readonly Manifest[]) => manifests.some(({ object }) => object.kind === 'CustomResourceDefinition')
