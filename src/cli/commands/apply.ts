import { type Stack, stackResource } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { applyManifest } from '../apply-manifests.ts'
import { formatError, usageError } from '../cli-error.ts'
import { explainRejection } from '../explain-rejection.ts'
import type { OutputFormat } from '../output/output-formats.ts'
import { objectName, serialize } from '../output/print-objects.ts'
import { type Manifest, readManifests } from '../read-manifests.ts'
import { note, print } from '../terminal.ts'
import { whenAllReady } from '../when-all-ready.ts'

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
    const stacks: Stack[] = []
    let exitCode = 0
    for (const manifest of manifests) {
      try {
        const { resource, object, outcome } = await applyManifest(client, manifest, settings)
        if (resource.kind === stackResource.kind && resource.group === stackResource.group) stacks.push(object as unknown as Stack)
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
    if (!options.wait) return exitCode
    const waited = await whenAllReady(client, stacks, parseDuration(options.timeout))
    return exitCode || waited
  })
}

export const definesKinds = (manifests: readonly Manifest[]) => manifests.some(({ object }) => object.kind === 'CustomResourceDefinition')
