import { type Stack, stackResource } from '../../../api/index.ts'
import { badRequest, type Resource, StatusError } from '../../../kubernetes/object/index.ts'
import type { StackYaml, YamlRequest, YamlResult } from '../../protocol/index.ts'
import { lineDiff } from './line-diff.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { parseStackYaml, problemsOf, stackYaml } from './stack-yaml.ts'

/** A longer text would block the other users of the console while it is parsed: this one takes up to a second. */
const maxYamlLength = 256 * 1024

export async function readYaml(request: StackRequest): Promise<StackYaml> {
  const stack = await readStack(request)
  return { yaml: stackYaml(stack), resourceVersion: stack.metadata.resourceVersion }
}

/**
 * Lets the server validate what the user has written, and stores it with `apply`: only if the Stack has not changed since it was shown.
 * Returns what would change, or has changed.
 */
export async function editYaml(request: StackRequest): Promise<YamlResult> {
  const { client, namespace, name } = request
  const { yaml, resourceVersion, apply = false } = (await request.body()) as Partial<YamlRequest>
  if (typeof yaml !== 'string' || typeof resourceVersion !== 'string' || typeof apply !== 'boolean')
    throw badRequest('the body must have yaml and the resourceVersion of the Stack that was shown')
  if (yaml.length > maxYamlLength)
    return {
      ok: false,
      problems: [{ message: `it has ${yaml.length} characters, and the console edits at most ${maxYamlLength}: use kubectl` }],
    }
  const { object, problems, lineOf } = parseStackYaml(yaml, request)
  if (!object) return { ok: false, problems }
  const before = await readStack(request)
  const { status: _, metadata, ...content } = object as Stack
  try {
    const stored = await client
      .resource(stackResource as Resource<Pick<Stack, 'spec'>>)
      .update({ ...content, metadata: { ...metadata, resourceVersion } }, { namespace, dryRun: !apply, fieldValidation: 'Strict' })
    const diff = lineDiff(stackYaml(before), stackYaml(stored as Stack))
    return { ok: true, applied: apply, resourceVersion: apply ? stored.metadata.resourceVersion : resourceVersion, diff }
  } catch (error) {
    if (!(error instanceof StatusError) || error.code >= 500) throw error
    if (error.reason === 'Conflict' && before.metadata.resourceVersion !== resourceVersion)
      return { ok: false, problems: [{ message: `stack/${name} has changed since it was shown: load it again and repeat your change` }] }
    return { ok: false, problems: problemsOf(error, lineOf) }
  }
}
