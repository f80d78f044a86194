import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { applyManifest } from '../apply-manifests.ts'
import { formatError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { explainRejection } from '../explain-rejection.ts'
import type { OutputFormat } from '../output/output-formats.ts'
import { objectName, serialize } from '../output/print-objects.ts'
import { type Manifest, readManifests } from '../read-manifests.ts'

export type ApplyCommandOptions = AccessOptions & { filename: string[]; force?: boolean; dryRun?: boolean; output?: OutputFormat }

/** `oarlock apply -f …`: applies every object, also after one was rejected. Returns the exit code. */
export async function apply(options: ApplyCommandOptions): Promise<number> {
  const manifests = await readManifests(options.filename)
  return await withClient(options, async client => {
    const settings = {
      namespace: namespaceOf(client, options),
      force: options.force,
      dryRun: options.dryRun,
      mayBeNew: definesKinds(manifests),
    }
    const objects: unknown[] = []
    let exitCode = 0
    for (const manifest of manifests) {
      try {
        const { resource, object, outcome } = await applyManifest(client, manifest, settings)
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
    return exitCode
  })
}

export const definesKinds = (manifests: readonly Manifest[]) => manifests.some(({ object }) => object.kind === 'CustomResourceDefinition')
