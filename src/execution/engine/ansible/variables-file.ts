import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'

/**
 * A document of variables for Ansible, in YAML. Ansible evaluates `{{ … }}` in variables, with lookups that run programs, so only `spec.variables`, which the author
 * of the Stack wrote, may have templates: strings under every other name, such as outputs of other Stacks and values of Secrets, are tagged `!unsafe` and stay text.
 */
export function variablesFile(variables: Readonly<Record<string, Json>>, own: Readonly<Record<string, unknown>> | undefined): string {
  const entries = Object.entries(variables).map(([name, value]) => {
    const isOwn = own !== undefined && Object.hasOwn(own, name)
    return `${quote(name)}: ${isOwn ? quoted(value, '') : unsafe(value)}\n`
  })
  return entries.join('') || '{}\n'
}

/** A value whose strings are no templates, in YAML on one line. */
export const unsafe = (value: Json): string => quoted(value, '!unsafe ')

function quoted(value: Json, tag: string): string {
  if (typeof value === 'string') return `${tag}${quote(value)}`
  if (Array.isArray(value)) return `[${value.map(item => quoted(item, tag)).join(', ')}]`
  if (isJsonObject(value))
    return `{${Object.entries(value)
      .map(([name, item]) => `${quote(name)}: ${quoted(item as Json, tag)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}

/** A string in double quotes. The escapes of JSON are those of YAML, which in addition requires them for further characters that cannot be printed. */
function quote(text: string): string {
  const hex = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text).replaceAll(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, hex)
}
