import {
  bool,
  bytes,
  type CelType,
  double,
  duration,
  dyn,
  int,
  list,
  map,
  nullType,
  opaque,
  optional,
  string,
  timestamp,
  typeOf,
  uint,
} from './types.ts'

/** One overload of a function. Parameters with the same name have the same type. */
export type Overload = { readonly isMember: boolean; readonly params: readonly CelType[]; readonly result: CelType }

/** The opaque types, by their names in the table below. */
export const opaqueNames = {
  URL: 'kubernetes.URL',
  Quantity: 'kubernetes.Quantity',
  Semver: 'kubernetes.Semver',
  Format: 'kubernetes.NamedFormat',
  IP: 'net.IP',
  CIDR: 'net.CIDR',
} as const

const named: Record<string, CelType> = { dyn, bool, int, uint, double, string, bytes, null: nullType, timestamp, duration }
// In the order in which cel-go tries the overloads.
const scalars = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes']
const numbers = ['int', 'uint', 'double']
const each = (types: readonly string[], template: string) => types.map(type => template.replaceAll('$', type)).join('\n')
const pairs = (template: string) =>
  numbers.flatMap(a => numbers.filter(b => b !== a).map(b => template.replace('$', a).replace('$', b))).join('\n')

/**
 * The declared functions: the standard library of CEL and the additions of Kubernetes 1.36 (apiserver's cel/environment/base.go).
 * `a.f(b) c` is a method, `f(a, b) c` a function; A, B, K and V are type parameters. `functions/` implements them.
 */
const table = `
_?_:_(bool, A, A) A
_&&_(bool, bool) bool
_||_(bool, bool) bool
!_(bool) bool
_==_(A, A) bool
_!=_(A, A) bool
${['<', '<=', '>', '>='].map(op => `${each(scalars, `_${op}_($, $) bool`)}\n${pairs(`_${op}_($, $) bool`)}`).join('\n')}
@in(A, list<A>) bool
@in(A, map<A,B>) bool
_[_](list<A>, int) A
_[_](map<A,B>, A) B
_[_](optional<list<A>>, int) optional<A>
_[_](optional<map<A,B>>, A) optional<B>
_[?_](list<A>, int) optional<A>
_[?_](map<A,B>, A) optional<B>
_[?_](optional<list<A>>, int) optional<A>
_[?_](optional<map<A,B>>, A) optional<B>
${each([...numbers, 'string', 'bytes', 'list<A>'], '_+_($, $) $')}
_+_(timestamp, duration) timestamp
_+_(duration, timestamp) timestamp
_+_(duration, duration) duration
${each(numbers, '_-_($, $) $')}
_-_(timestamp, duration) timestamp
_-_(timestamp, timestamp) duration
_-_(duration, duration) duration
${each(numbers, '_*_($, $) $')}
${each(numbers, '_/_($, $) $')}
${each(['int', 'uint'], '_%_($, $) $')}
-_(int) int
-_(double) double
${each(['string', 'bytes', 'list<A>', 'map<A,B>'], 'size($) int\n$.size() int')}
type(A) type<A>
dyn(A) dyn
${each(['int', 'uint', 'double', 'string', 'timestamp', 'duration'], 'int($) int')}
${each(numbers, 'uint($) uint')}
uint(string) uint
${each(numbers, 'double($) double')}
double(string) double
${each([...scalars], 'string($) string')}
${each(['bytes', 'string'], 'bytes($) bytes')}
${each(['bool', 'string'], 'bool($) bool')}
${each(['duration', 'string', 'int'], 'duration($) duration')}
${each(['timestamp', 'string', 'int'], 'timestamp($) timestamp')}
${['FullYear', 'Month', 'DayOfYear', 'DayOfMonth', 'Date', 'DayOfWeek', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']
  .map(part => `timestamp.get${part}() int\ntimestamp.get${part}(string) int`)
  .join('\n')}
${each(['Hours', 'Minutes', 'Seconds', 'Milliseconds'], 'duration.get$() int')}
string.contains(string) bool
string.startsWith(string) bool
string.endsWith(string) bool
string.matches(string) bool
matches(string, string) bool
string.charAt(int) string
string.indexOf(string) int
string.indexOf(string, int) int
string.lastIndexOf(string) int
string.lastIndexOf(string, int) int
string.lowerAscii() string
string.upperAscii() string
string.replace(string, string) string
string.replace(string, string, int) string
string.split(string) list<string>
string.split(string, int) list<string>
string.substring(int) string
string.substring(int, int) string
string.trim() string
string.format(list<dyn>) string
strings.quote(string) string
list<string>.join() string
list<string>.join(string) string
string.find(string) string
string.findAll(string) list<string>
string.findAll(string, int) list<string>
${each(scalars, 'list<$>.isSorted() bool\nlist<$>.min() $\nlist<$>.max() $')}
${each([...numbers, 'duration'], 'list<$>.sum() $')}
list<A>.indexOf(A) int
list<A>.lastIndexOf(A) int
list<A>.slice(int, int) list<A>
list<list<A>>.flatten() list<A>
list<dyn>.flatten(int) list<dyn>
${each(scalars, 'list<$>.sort() list<$>')}
lists.range(int) list<int>
list<A>.reverse() list<A>
list<A>.distinct() list<A>
list<A>.first() optional<A>
list<A>.last() optional<A>
sets.contains(list<A>, list<A>) bool
sets.equivalent(list<A>, list<A>) bool
sets.intersects(list<A>, list<A>) bool
optional.of(A) optional<A>
optional.ofNonZeroValue(A) optional<A>
optional.none() optional<A>
optional.unwrap(list<optional<A>>) list<A>
list<optional<A>>.unwrapOpt() list<A>
optional<A>.value() A
optional<A>.hasValue() bool
optional<A>.or(optional<A>) optional<A>
optional<A>.orValue(A) A
url(string) URL
isURL(string) bool
${each(['Scheme', 'Host', 'Hostname', 'Port', 'EscapedPath'], 'URL.get$() string')}
URL.getQuery() map<string,list<string>>
quantity(string) Quantity
isQuantity(string) bool
sign(Quantity) int
Quantity.isGreaterThan(Quantity) bool
Quantity.isLessThan(Quantity) bool
Quantity.compareTo(Quantity) int
Quantity.asApproximateFloat() double
Quantity.asInteger() int
Quantity.isInteger() bool
${each(['Quantity', 'int'], 'Quantity.add($) Quantity\nQuantity.sub($) Quantity')}
ip(string) IP
isIP(string) bool
ip.isCanonical(string) bool
string(IP) string
IP.family() int
${each(['Unspecified', 'Loopback', 'LinkLocalMulticast', 'LinkLocalUnicast', 'GlobalUnicast'], 'IP.is$() bool')}
cidr(string) CIDR
isCIDR(string) bool
string(CIDR) string
${each(['string', 'IP'], 'CIDR.containsIP($) bool')}
${each(['string', 'CIDR'], 'CIDR.containsCIDR($) bool')}
CIDR.ip() IP
CIDR.masked() CIDR
CIDR.prefixLength() int
semver(string) Semver
semver(string, bool) Semver
isSemver(string) bool
isSemver(string, bool) bool
Semver.isGreaterThan(Semver) bool
Semver.isLessThan(Semver) bool
Semver.compareTo(Semver) int
${each(['major', 'minor', 'patch'], 'Semver.$() int')}
format.named(string) optional<Format>
${each(
  [
    'dns1123Label',
    'dns1123Subdomain',
    'dns1035Label',
    'qualifiedName',
    'dns1123LabelPrefix',
    'dns1123SubdomainPrefix',
    'dns1035LabelPrefix',
    'labelValue',
    'uri',
    'uuid',
    'byte',
    'date',
    'datetime',
  ],
  'format.$() Format',
)}
Format.validate(string) optional<list<string>>
`

let overloads: Map<string, Overload[]> | undefined

/** The overloads of `name`; undefined if it is not declared. */
export function overloadsOf(name: string): readonly Overload[] | undefined {
  overloads ??= readTable()
  return overloads.get(name)
}

function readTable(): Map<string, Overload[]> {
  const result = new Map<string, Overload[]>()
  for (const line of table.split('\n')) {
    const match = /^(?:([A-Za-z<>,]+)\.(?=[a-z][A-Za-z]*\())?([^(]+)\((.*)\) (.+)$/.exec(line)
    if (!match) continue
    const [, receiver, rawName, rawParams, rawResult] = match
    // `sets.contains(…)` is a function with a qualified name, `string.contains(…)` a method of strings.
    const isMember = receiver !== undefined && (receiver in named || /^[A-Z]|[<]/.test(receiver))
    const name = receiver === undefined || isMember ? rawName! : `${receiver}.${rawName}`
    const params = splitTypes(rawParams!).map(readType)
    if (isMember) params.unshift(readType(receiver))
    const entry = result.get(name) ?? []
    entry.push({ isMember, params, result: readType(rawResult!) })
    result.set(name, entry)
  }
  return result
}

function splitTypes(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let index = 0; index <= text.length; index++) {
    const character = text[index]
    if (character === '<') depth++
    else if (character === '>') depth--
    else if ((character === ',' && depth === 0) || character === undefined) {
      const part = text.slice(start, index).trim()
      if (part) parts.push(part)
      start = index + 1
    }
  }
  return parts
}

const parameters = ['A', 'B', 'K', 'V']

function readType(text: string): CelType {
  const inner = /^(list|map|optional|type)<(.*)>$/.exec(text)
  if (inner) {
    const [first, second] = splitTypes(inner[2]!).map(readType)
    if (inner[1] === 'map') return map(first!, second!)
    return inner[1] === 'list' ? list(first!) : inner[1] === 'optional' ? optional(first!) : typeOf(first!)
  }
  const index = parameters.indexOf(text)
  if (index >= 0) return { kind: 'param', id: index, name: text }
  const type = named[text]
  if (type) return type
  if (text in opaqueNames) return opaque(opaqueNames[text as keyof typeof opaqueNames])
  throw new TypeError(`bug: the table of CEL functions contains an unknown type ${text}`)
}

/** Identifiers that denote types, as in `type(self) == int`. */
export const typeNames: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ...Object.entries(named).filter(([name]) => !['null', 'timestamp', 'duration', 'dyn'].includes(name)),
  ['null_type', nullType],
  ['list', list(dyn)],
  ['map', map(dyn, dyn)],
  ['type', typeOf(dyn)],
  ['optional_type', optional(dyn)],
  ['google.protobuf.Timestamp', timestamp],
  ['google.protobuf.Duration', duration],
  ...Object.values(opaqueNames).map((name): [string, CelType] => [name, opaque(name)]),
])
