import type { StackSpec, VariablesFrom } from '../../../api/index.ts'
import type { ShownValue, StackVariable, StackVariables, VariableSource } from '../../protocol/index.ts'

/** What is known of the data behind a reference: its values, or why they are not known. A Secret is never read. */
export type ReferencedData =
  | { readonly values: Readonly<Record<string, unknown>>; readonly problem?: undefined }
  | { readonly problem: string }

export type References = {
  readonly configMaps: ReadonlyMap<string, ReferencedData>
  /** The outputs of other Stacks that are not sensitive. */
  readonly stacks: ReadonlyMap<string, ReferencedData>
}

type Entry = Omit<StackVariable, 'overriddenBy'>
const hidden = { hidden: true } as const

/**
 * The variables of a Stack with where each comes from, as the worker merges them: a later entry of `variablesFrom` overrides an earlier one, and
 * `variables` overrides all. Values of Secrets and sensitive outputs are hidden (invariant 9).
 */
export function variableSources(spec: Pick<StackSpec, 'variables' | 'variablesFrom' | 'env'>, references: References): StackVariables {
  const entries: Entry[] = [
    ...(spec.variablesFrom ?? []).flatMap((from, index) => entriesOf(from, `spec.variablesFrom[${index}]`, references)),
    ...Object.entries(spec.variables ?? {}).map(
      ([name, value]): Entry => ({ name, field: `spec.variables.${name}`, source: { kind: 'Spec' }, content: { value } }),
    ),
  ]
  const variables = entries.map((entry, index): StackVariable => {
    const winner = entry.name === undefined ? undefined : entries.findLast(({ name }, at) => at > index && name === entry.name)
    return winner ? { ...entry, overriddenBy: winner.field } : entry
  })
  const environment = (spec.env ?? []).map(({ name, value, secretKeyRef }): StackVariable => {
    const field = `spec.env.${name}`
    if (secretKeyRef) return { name, field, source: { kind: 'Secret', name: secretKeyRef.name, key: secretKeyRef.key }, content: hidden }
    return { name, field, source: { kind: 'Spec' }, content: { value: value ?? '' } }
  })
  return { variables: variables.sort(byName), environment }
}

function entriesOf({ stackRef, secretRef, configMapRef }: VariablesFrom, field: string, { configMaps, stacks }: References): Entry[] {
  if (stackRef) {
    const data = stacks.get(stackRef.name)
    const source = (output?: string): VariableSource => ({ kind: 'Stack', name: stackRef.name, ...(output !== undefined && { output }) })
    const at = `${field}.stackRef`
    if (stackRef.outputs)
      return Object.entries(stackRef.outputs).map(([output, name]) => ({
        name,
        field: at,
        source: source(output),
        ...content(data, output),
      }))
    if (!data || data.problem !== undefined) return [{ field: at, source: source(), ...(data && { problem: data.problem }) }]
    const known = Object.keys(data.values).map((name): Entry => ({ name, field: at, source: source(name), ...content(data, name) }))
    return [...known, { field: at, source: source(), problem: 'sensitive outputs of this Stack are variables too' }]
  }
  if (secretRef) {
    const source = (key?: string): VariableSource => ({ kind: 'Secret', name: secretRef.name, ...(key !== undefined && { key }) })
    const at = `${field}.secretRef`
    if (!secretRef.keys) return [{ field: at, source: source(), content: hidden }]
    return Object.entries(secretRef.keys).map(([key, name]) => ({ name, field: at, source: source(key), content: hidden }))
  }
  if (!configMapRef) return []
  const data = configMaps.get(configMapRef.name)
  const at = `${field}.configMapRef`
  const source = (key?: string): VariableSource => ({ kind: 'ConfigMap', name: configMapRef.name, ...(key !== undefined && { key }) })
  const named =
    configMapRef.keys ??
    (data && data.problem === undefined ? Object.fromEntries(Object.keys(data.values).map(key => [key, key])) : undefined)
  if (!named) return [{ field: at, source: source(), ...(data?.problem !== undefined && { problem: data.problem }) }]
  return Object.entries(named).map(([key, name]) => ({ name, field: at, source: source(key), ...content(data, key) }))
}

/** An output that is not among those of the status is sensitive, or does not exist yet. */
function content(data: ReferencedData | undefined, key: string): { readonly content?: ShownValue; readonly problem?: string } {
  if (!data) return {}
  if (data.problem !== undefined) return { problem: data.problem }
  return { content: Object.hasOwn(data.values, key) ? { value: data.values[key] } : hidden }
}

const byName = (a: StackVariable, b: StackVariable) =>
  (a.name ?? '\uffff').localeCompare(b.name ?? '\uffff') || a.field.localeCompare(b.field)
