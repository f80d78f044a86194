import { type Stack, stackResource } from '../../../api/index.ts'
import { badRequest, type Resource, StatusError } from '../../../kubernetes/object/index.ts'
import type { DiffLine, StackYaml, YamlRequest, YamlResult } from '../../protocol/index.ts'
import { whyNotAllowed } from '../available-actions.ts'
import { readStack, type StackRequest } from './stack-request.ts'

/** A text of this length takes up to 2 s to parse. */
const maxYamlLength = 256 * 1024

export async function readYaml(request: StackRequest): Promise<StackYaml> {
  const stack = await readStack(request)
  const [yaml, whyNoEdit] = await Promise.all([
    request.tasks.yaml('stackYaml', writtenOf(stack)),
    whyNotAllowed([{ verb: 'update', resource: 'stacks' }], request.rights),
  ])
  return { yaml, resourceVersion: stack.metadata.resourceVersion, ...(whyNoEdit !== undefined && { whyNoEdit }) }
}

/**
 * Lets the server validate what the user has written, and stores it with `apply`: only if the Stack has not changed since it was shown.
 * Returns what would change, or has changed.
 */
export async function editYaml(request: StackRequest): Promise<YamlResult> {
  const { client, namespace, name, tasks } = request
  const { yaml, resourceVersion, apply = false } = (await request.body()) as Partial<YamlRequest>
  if (typeof yaml !== 'string' || typeof resourceVersion !== 'string' || typeof apply !== 'boolean')
    throw badRequest('the body must have yaml and the resourceVersion of the Stack that was shown')
  if (yaml.length > maxYamlLength)
    return {
      ok: false,
      problems: [{ message: `it has ${yaml.length} characters, and the console edits at most ${maxYamlLength}: use kubectl` }],
    }
  const { object, problems } = await tasks.yaml('parseStackYaml', yaml, { namespace, name })
  if (!object) return { ok: false, problems }
  const before = await readStack(request)
  const { status: _, metadata, ...content } = object as Stack
  let stored: Stack
  try {
    stored = (await client
      .resource(stackResource as Resource<Pick<Stack, 'spec'>>)
      .update(
        { ...content, metadata: { ...metadata, resourceVersion } },
        { namespace, dryRun: !apply, fieldValidation: 'Strict' },
      )) as Stack
  } catch (error) {
    if (!(error instanceof StatusError) || error.code >= 500) throw error
    if (error.reason === 'Conflict' && before.metadata.resourceVersion !== resourceVersion)
      return { ok: false, problems: [{ message: `stack/${name} has changed since it was shown: load it again and repeat your change` }] }
    const { message, details } = error.toStatus()
    return { ok: false, problems: await tasks.yaml('problemsOf', { message, details }, yaml) }
  }
  const diff = await tasks.yaml('diffStacks', writtenOf(before), writtenOf(stored)).catch((error: unknown): DiffLine[] => {
    if (!apply) throw error
    // What is stored is applied, also if there is no time for the comparison.
    return [{ sign: '…', text: '' }]
  })
  return { ok: true, applied: apply, resourceVersion: apply ? stored.metadata.resourceVersion : resourceVersion, diff }
}

/** Without the status: only this is shown. */
const writtenOf = ({ metadata, spec }: Stack): Pick<Stack, 'metadata' | 'spec'> => ({ metadata, spec })
