import { secretSignature, signatureKey } from '../../../stores/pulumi/index.ts'
import { PulumiBackendError, type PulumiStackId } from '../../pulumi-backend/index.ts'
import type { EngineContext, Output, StackOutputs } from '../engine.ts'
import { rootType } from './urn.ts'

type Reference = Pick<EngineContext, 'spec' | 'stack' | 'readStackOutputs'>

/**
 * What a StackReference to `id` finds: a state with the outputs of the Stack and nothing else. A Stack refers to Stacks of its own namespace that
 * its spec names, of any engine: to one of Pulumi as `<namespace>/<project>/<stack>`, to others as `<namespace>/<any project>/<name of the Stack>`.
 * @throws {PulumiBackendError} Forbidden, with the remedy; NotFound if the Stack has no outputs yet.
 */
export async function readReferencedStack({ spec, stack: own, readStackOutputs }: Reference, id: PulumiStackId): Promise<Uint8Array> {
  const { organization, project, stack } = id
  const text = `${organization}/${project}/${stack}`
  if (organization !== own.namespace) {
    const message = `${text} is in another organization: a Stack refers to Stacks of its own namespace, as ${own.namespace}/${project}/${stack}`
    throw new PulumiBackendError('Forbidden', message)
  }
  const names = referableStacks(spec)
  for (const name of names) {
    const found = await readStackOutputs(name)
    if (!found && name === stack) throw new PulumiBackendError('NotFound', `Stack ${own.namespace}/${name} has no outputs yet`)
    if (found && isReferredTo(id, name, found)) return Buffer.from(JSON.stringify(deploymentWith(id, found.outputs)))
  }
  const named = names.length === 0 ? 'it names none' : `it names ${names.join(', ')}`
  throw new PulumiBackendError(
    'Forbidden',
    `Stack ${own.namespace}/${own.name} may not refer to ${text}: name that Stack in spec.dependsOn or in a stackRef of spec.variablesFrom; ${named}`,
  )
}

export const referableStacks = ({ dependsOn, variablesFrom }: Reference['spec']): string[] => [
  ...new Set([...(dependsOn ?? []).map(({ name }) => name), ...(variablesFrom ?? []).flatMap(({ stackRef }) => stackRef?.name ?? [])]),
]

const isReferredTo = ({ project, stack }: PulumiStackId, name: string, { pulumiStack }: StackOutputs): boolean =>
  pulumiStack === undefined ? name === stack : pulumiStack === `${project}/${stack}`

function deploymentWith({ project, stack }: PulumiStackId, outputs: Readonly<Record<string, Output>>): object {
  const values = Object.entries(outputs).map(([name, { value, sensitive }]) => [
    name,
    sensitive ? { [signatureKey]: secretSignature, plaintext: JSON.stringify(value) } : value,
  ])
  const urn = `urn:pulumi:${stack}::${project}::${rootType}::${project}-${stack}`
  const root = { urn, custom: false, type: rootType, outputs: Object.fromEntries(values) }
  return { version: 3, deployment: { manifest: { time: '2000-01-01T00:00:00Z', magic: '', version: '' }, resources: [root] } }
}
