import { type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Resource } from '../../kubernetes/object/index.ts'
import { parseDuration, StatusError } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { formatError, usageError } from '../cli-error.ts'
import { destroyProblem } from '../destroy-problem.ts'
import { exitCodes } from '../exit-codes.ts'
import { discoverTypes, findTypes, parseTarget } from '../find-types.ts'
import { objectName } from '../output/print-objects.ts'
import { readManifests } from '../read-manifests.ts'
import { stackNotFound } from '../targets.ts'
import { note, print } from '../terminal.ts'
import { waitFor } from '../wait-for.ts'

export type DeleteOptions = AccessOptions & {
  filename?: string[]
  wait: boolean
  timeout: string
  ignoreNotFound?: boolean
  force?: boolean
}

/** `oarlock delete TYPE NAME…`, `TYPE/NAME…` or `-f …`. Returns the exit code. */
export async function remove(args: string[], options: DeleteOptions): Promise<number> {
  const timeoutMs = parseDuration(options.timeout)
  return await withClient(options, async client => {
    const targets: { resource: Resource; name: string; namespace: string | undefined }[] = []
    const add = (resource: Resource, name: string, namespace = namespaceOf(client, options)) =>
      targets.push({ resource, name, namespace: resource.scope === 'Namespaced' ? namespace : undefined })
    if (options.filename) {
      // In the reverse order of applying: later objects may depend on earlier ones.
      for (const { object } of (await readManifests(options.filename)).reverse()) {
        add(await client.discover(object.apiVersion, object.kind), object.metadata.name, object.metadata.namespace)
      }
    } else {
      const types = await discoverTypes(client)
      const [first = '', ...rest] = args
      const pairs = first.includes('/') ? args.map(arg => parseTarget(arg, '')) : rest.map(name => ({ type: first, name }))
      if (pairs.length === 0)
        throw usageError('specify the object to delete', 'use oarlock delete TYPE NAME, oarlock delete TYPE/NAME or oarlock delete -f FILE')
      const malformed = pairs.find(({ type, name }) => type === '' || name === '' || name.includes('/'))
      if (malformed) {
        const text = `${malformed.type}/${malformed.name}`
        throw usageError(`expected TYPE NAME or TYPE/NAME, got ${JSON.stringify(text)}`, '"oarlock delete --help" describes the arguments')
      }
      for (const { type, name } of pairs) for (const resource of findTypes(type, types)) add(resource, name)
    }
    const other = options.force ? targets.find(({ resource }) => resource.kind !== stackResource.kind) : undefined
    if (other) throw usageError(`--force deletes a Stack without its resources; ${objectName(other.resource, other.name)} is no Stack`)
    let exitCode = 0
    for (const { resource, name, namespace } of targets) {
      try {
        if (options.force) await orphan(client, name, namespace)
        try {
          await client.resource(resource).delete(name, { namespace })
        } catch (error) {
          // A Stack that was terminating already may be gone as soon as it is orphaned.
          if (!(options.force && error instanceof StatusError && error.code === 404)) throw error
        }
        if (options.wait) {
          const what = `${objectName(resource, name)} to be deleted`
          await waitFor(client, resource, { namespace, name, timeoutMs, what }, object => {
            const problem = object && resource.kind === stackResource.kind ? destroyProblem(object as unknown as Stack) : undefined
            if (problem) throw problem
            return object === undefined ? true : undefined
          })
        }
        print(`${objectName(resource, name)} ${options.wait ? 'deleted' : 'is being deleted'}`)
      } catch (error) {
        const { exitCode: code } = formatError(error)
        if (options.ignoreNotFound && code === exitCodes.notFound) continue
        const isMissingStack = code === exitCodes.notFound && resource.kind === 'Stack' && namespace !== undefined
        const { message, hint } = formatError(isMissingStack ? await stackNotFound(client, name, namespace) : error)
        note(`oarlock: ${message}`)
        if (hint) note(`  hint: ${hint}`)
        exitCode ||= code
      }
    }
    return exitCode
  })
}

/** The resources of the Stack remain when it is deleted, also if its state is missing. */
async function orphan(client: Client, name: string, namespace: string | undefined): Promise<void> {
  const stacks = client.resource(stackResource)
  const { spec } = await stacks.get(name, { namespace })
  // The server rejects the deletion, and nothing may have changed then.
  if (!spec.deletionProtection) await stacks.patch(name, { spec: { deletion: 'Orphan' } }, { type: 'merge', namespace })
}
