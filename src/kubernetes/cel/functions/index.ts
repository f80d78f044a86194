/** The implementations of the functions in `declarations.ts`, by name: each selects the overload by the types of its arguments. */
import { conversions } from './conversions.ts'
import { formats } from './formats.ts'
import type { Implementation } from './implementation.ts'
import { lists } from './lists.ts'
import { networks } from './networks.ts'
import { operators } from './operators.ts'
import { optionals } from './optionals.ts'
import { quantities } from './quantities.ts'
import { regexes } from './regexes.ts'
import { strings } from './strings.ts'
import { times } from './times.ts'
import { urls } from './urls.ts'
import { versions } from './versions.ts'

export type { Implementation } from './implementation.ts'

/** For names that several types share, such as `indexOf` of strings and lists: the first implementation that accepts the value is used. */
function join(...groups: Readonly<Record<string, Implementation>>[]): ReadonlyMap<string, Implementation> {
  const joined = new Map<string, Implementation>()
  for (const group of groups) {
    for (const [name, implementation] of Object.entries(group)) {
      if (joined.has(name)) throw new TypeError(`the CEL function ${name} is implemented twice`)
      joined.set(name, implementation)
    }
  }
  return joined
}

export const functions = join(
  conversions,
  formats,
  lists,
  networks,
  operators,
  optionals,
  quantities,
  regexes,
  strings,
  times,
  urls,
  versions,
)
