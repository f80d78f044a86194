/** It is recorded in an annotation. Engines write a UUID. */
const maxLineageLength = 256

/** Why text is not a state that an engine can continue from, and what helps; undefined for a complete state of format 4. */
export function importProblem(content: string): { message: string; hint?: string } | undefined {
  if (content.trim() === '') return { message: 'there is no state', hint: 'check the directory and its selected workspace' }
  let state: unknown
  try {
    state = JSON.parse(content)
  } catch {
    return { message: 'it is not JSON', hint: 'a state is what "terraform state pull" or "tofu state pull" prints' }
  }
  if (typeof state !== 'object' || state === null || Array.isArray(state)) return { message: 'it is not a JSON object' }
  if ('deployment' in state || 'checkpoint' in state)
    return { message: 'it is a state of Pulumi', hint: 'import it into a Stack of engine pulumi' }
  if ('encrypted_data' in state)
    return { message: 'it is encrypted', hint: 'import the directory of the root module: its engine decrypts the state' }
  const { version, serial, lineage, resources } = state as Record<string, unknown>
  if (version !== 4) {
    const hint = 'an engine of version 0.12 or later writes format 4: run "apply" with it once'
    return typeof version === 'number' && version < 4
      ? { message: `it has format ${version}, only format 4 is supported`, hint }
      : { message: 'it is not a state of Terraform or OpenTofu in format 4' }
  }
  if (!Number.isSafeInteger(serial) || (serial as number) < 0) return { message: 'its serial is not a whole number' }
  if (typeof lineage !== 'string' || lineage === '') return { message: 'it has no lineage' }
  if (lineage.length > maxLineageLength)
    return { message: `its lineage has ${lineage.length} characters; at most ${maxLineageLength} are allowed` }
  if (!Array.isArray(resources)) return { message: 'it has no list of resources' }
  return undefined
}
