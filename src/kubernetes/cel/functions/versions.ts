import { opaqueNames } from '../declarations.ts'
import { CelError, Opaque, type Value } from '../values.ts'
import { asBool, asString, type FunctionTable, unwrapOpaque } from './implementation.ts'

class Version {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly pre: readonly string[]

  constructor(numbers: readonly [bigint, bigint, bigint], pre: readonly string[]) {
    this.numbers = numbers
    this.pre = pre
  }
}

/** Semantic versions 2.0. Their comparisons share names with those of quantities and are implemented there. */
export const versions: FunctionTable = {
  semver: (text, normalize) => {
    const source = asString(text)
    const version = parse(source, normalize !== undefined && asBool(normalize))
    if (typeof version === 'string') throw new CelError(version)
    return new Opaque(opaqueNames.Semver, version, `${version.numbers.join('.')}-${version.pre.join('.')}`)
  },
  isSemver: (text, normalize) => typeof parse(asString(text), normalize !== undefined && asBool(normalize)) !== 'string',
  major: value => read(value!).numbers[0],
  minor: value => read(value!).numbers[1],
  patch: value => read(value!).numbers[2],
}

/** Below 0 if `a` precedes `b`. */
export function semverLess(a: Value, b: Value): number {
  const [left, right] = [read(a), read(b)]
  for (const [index, number] of left.numbers.entries()) {
    const other = right.numbers[index]!
    if (number !== other) return number < other ? -1 : 1
  }
  if (left.pre.length === 0 || right.pre.length === 0) return right.pre.length - left.pre.length
  for (const [index, part] of left.pre.entries()) {
    const other = right.pre[index]
    if (other === undefined) return 1
    if (part === other) continue
    const [isNumber, isOtherNumber] = [/^\d+$/.test(part), /^\d+$/.test(other)]
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1
    return (isNumber ? BigInt(part) < BigInt(other) : part < other) ? -1 : 1
  }
  return left.pre.length - right.pre.length
}

const read = (value: Value): Version => unwrapOpaque(value, opaqueNames.Semver, (inner): inner is Version => inner instanceof Version)

const strict = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/
const maxLength = 1_000

/** The version, or why it is invalid. */
function parse(text: string, isNormalized: boolean): Version | string {
  if (text === '') return 'Version string empty'
  const source = isNormalized ? normalize(text.slice(0, maxLength + 1)) : text
  if (source === undefined) return 'short version cannot contain PreRelease/Build meta data'
  const match = source.length > maxLength ? null : strict.exec(source)
  if (!match) return source.split('.').length < 3 ? 'No Major.Minor.Patch elements found' : 'Invalid character(s) found in version'
  const [, major, minor, patch, pre, build] = match
  const parts = pre?.split('.') ?? []
  if (parts.some(part => part === '' || /^0\d+$/.test(part)) || build?.split('.').includes('')) return 'Prerelease is empty'
  const numbers = [major!, minor!, patch!].map(BigInt) as [bigint, bigint, bigint]
  if (numbers.some(number => number >= 2n ** 63n)) return 'value out of range'
  return new Version(numbers, parts)
}

function normalize(text: string): string | undefined {
  const [major = '', minor, ...rest] = text.replace(/^v/, '').split('.')
  const parts = minor === undefined ? [major] : rest.length === 0 ? [major, minor] : [major, minor, rest.join('.')]
  const trimmed = parts.map(part => part.replace(/^0+(?=\d)/, ''))
  if (trimmed.length < 3 && /[+-]/.test(trimmed.at(-1)!)) return undefined
  while (trimmed.length < 3) trimmed.push('0')
  return trimmed.join('.')
}
