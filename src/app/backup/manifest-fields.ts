import { isJsonObject } from '../../kubernetes/object/index.ts'
import { backupFiles } from './backup-files.ts'

type Check = (value: unknown) => boolean

const count: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
/** Texts are printed. */
const text: Check = value => typeof value === 'string' && !/\p{Cc}/u.test(value)
const matching =
  (pattern: RegExp): Check =>
  value =>
    typeof value === 'string' && pattern.test(value)
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)
const listOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check)
const object =
  (fields: Record<string, Check>): Check =>
  value =>
    isJsonObject(value) && Object.entries(fields).every(([name, check]) => check(value[name]))
const countByName: Check = value => isJsonObject(value) && Object.entries(value).every(([name, number]) => text(name) && count(number))
/** Any other name could be a path elsewhere. */
const fileName: Check = value => (Object.values(backupFiles) as unknown[]).includes(value)

const fields: Record<string, Check> = {
  oarlock: text,
  createdAt: matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
  files: listOf(object({ name: fileName, size: count, sha256: matching(/^[0-9a-f]{64}$/) })),
  objects: optional(object({ count, revision: count, encrypted: countByName })),
  states: optional(
    object({
      ...{ stacks: count, versions: count, orphans: count, plans: count, locks: count, key: text },
      stores: object({ id: text, generation: object({ number: count, nonce: text, time: text }) }),
    }),
  ),
  logs: optional(object({ count })),
  keys: optional(object({ names: listOf(text) })),
  omitted: listOf(object({ what: text, reason: text })),
}

/** The first field of a manifest that no backup has so; undefined if all are valid. Each part is listed once among the files, and no other file is. */
export function findInvalidField(manifest: Record<string, unknown>): string | undefined {
  for (const [name, check] of Object.entries(fields)) if (!check(manifest[name])) return name
  const names = (manifest.files as { name: string }[]).map(({ name }) => name)
  const listed = Object.entries(backupFiles).flatMap(([part, name]) => (manifest[part] === undefined ? [] : [name]))
  return names.toSorted().join() === listed.toSorted().join() ? undefined : 'files'
}
