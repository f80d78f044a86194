import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { type SecretValue, secretOf } from '../../../stores/pulumi/index.ts'
import { sensitiveText } from '../hide-sensitive.ts'

/** What a preview has in place of a value that is known only afterwards (`sdk/go/common/resource/plugin/rpc.go`). */
const unknowns: readonly unknown[] = [
  '04da6b54-80e4-46f7-96ec-b56ff0331ba9',
  '1c4a061d-8072-4f0a-a4cb-0ff528b18fe7',
  '3eeb2bf0-c639-47a8-9e75-3b44932eb421',
  '6a19a0b0-7e62-4c92-b797-7f8e31da9cc2',
  '030794c1-ac77-496b-92df-f27374a8bd58',
  'e48ece36-62e2-4504-bad9-02848725956a',
  'dd056dcd-154b-4c76-9bd3-c8f88648b5ff',
]
export const unknownText = '(known after apply)'

/** Without secrets, and with a text in place of what is not known yet. */
export function hideSecrets(value: unknown): Json {
  return replaceSecrets(value, () => sensitiveText)
}

/** `value` with the result of `replace` in place of every secret, also inside of lists and objects. */
export function replaceSecrets(value: unknown, replace: (secret: SecretValue) => Json): Json {
  const secret = secretOf(value)
  if (secret) return replace(secret)
  if (unknowns.includes(value)) return unknownText
  if (Array.isArray(value)) return value.map(each => replaceSecrets(each, replace))
  if (!isJsonObject(value)) return value as Json
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceSecrets(each, replace)]))
}

/** Whether `value` contains something that is known only after an update. */
export const hasUnknown = (value: unknown): boolean =>
  unknowns.includes(value) || (typeof value === 'object' && value !== null && Object.values(value).some(hasUnknown))
