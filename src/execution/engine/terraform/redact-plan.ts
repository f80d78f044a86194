import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { hideSensitive, sensitiveText } from '../hide-sensitive.ts'

/**
 * The document of `terraform show -json PLANFILE` with every sensitive leaf hidden (invariant 9): in changes, drift, outputs, planned
 * values, prior state and variables, wherever they are nested. `sensitiveNames` are variables that are secret although the configuration
 * does not mark them. Without `configuration`: it has the values of the source code, and nothing marks those of sensitive attributes.
 */
export function redactPlan(plan: Json, sensitiveNames: readonly string[]): Json {
  if (!isJsonObject(plan)) return redact(plan)
  const { configuration: _, ...rest } = plan
  const redacted = redact(rest as Json)
  if (!isJsonObject(redacted) || !isJsonObject(plan.variables)) return redacted
  const secret = new Set([...sensitiveNames, ...sensitiveVariables(plan)])
  const variables = Object.entries(plan.variables).map(([name, variable]) => [name, secret.has(name) ? { value: sensitiveText } : variable])
  return { ...redacted, variables: Object.fromEntries(variables) }
}

/** `config_values` are those of a provider's action, since Terraform 1.14. */
const marksOf = {
  values: 'sensitive_values',
  before: 'before_sensitive',
  after: 'after_sensitive',
  config_values: 'config_sensitive',
} as const

/** The rules go by the names of a value and its marks, so that they hold for parts of later format versions too. */
function redact(node: Json): Json {
  if (Array.isArray(node)) return node.map(redact)
  if (!isJsonObject(node)) return node
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, redactField(node, key, value as Json)]))
}

function redactField(node: Record<string, unknown>, key: string, value: Json): Json {
  const marks = Object.hasOwn(marksOf, key) ? node[marksOf[key as keyof typeof marksOf]] : undefined
  if (marks !== undefined) return hideSensitive(value, marks)
  // Outputs of a state.
  return key === 'value' && node.sensitive === true ? sensitiveText : redact(value)
}

/** The names of the variables that the configuration marks as sensitive. */
export function sensitiveVariables(plan: Json): string[] {
  const configuration = isJsonObject(plan) ? plan.configuration : undefined
  const root = isJsonObject(configuration) ? configuration.root_module : undefined
  const variables = isJsonObject(root) && isJsonObject(root.variables) ? root.variables : {}
  return Object.keys(variables).filter(name => (variables[name] as { sensitive?: unknown } | undefined)?.sensitive === true)
}

/** The variables of the root module by name. */
export function planVariables(plan: Json): Record<string, Json> {
  const variables = isJsonObject(plan) && isJsonObject(plan.variables) ? plan.variables : {}
  return Object.fromEntries(Object.entries(variables).map(([name, variable]) => [name, (variable as { value?: Json })?.value ?? null]))
}
