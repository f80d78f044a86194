import fc from 'fast-check'

/**
 * Generates requests to Oarlock's endpoints beside the API: valid ones, and valid ones of which path, headers, credential, body or framing are changed.
 * Bodies are latin1 text, one character per byte, so that a printed request is exact.
 */
export type EndpointRequest = {
  address: string
  method: string
  path: string
  credential: string
  headers: readonly (readonly [name: string, value: string])[]
  body: string
  framing: Framing
}

export type Framing =
  | 'length'
  | 'chunked'
  | 'gzip'
  | 'too-long'
  | 'too-short'
  | 'huge-length'
  | 'bad-length'
  | 'two-lengths'
  | 'length-and-chunked'
  | 'bad-chunk'
  | 'pipelined'
  | 'truncated'
  | 'aborted'

export const oneOf = <const T extends readonly unknown[]>(...values: T): fc.Arbitrary<T[number]> => fc.constantFrom<T[number]>(...values)
/** Mostly one of the first values, sometimes one of the others. */
export const mostly = <T>(usual: readonly T[], unusual: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constantFrom(...unusual) })
export const bytes = (maxLength: number) => fc.string({ maxLength, unit: fc.nat(255).map(code => String.fromCharCode(code)) })
export const utf8 = (text: string) => Buffer.from(text).toString('latin1')
export const json = (value: unknown) => utf8(JSON.stringify(value) ?? '')

/** Changes a path: other encodings of the same segments, traversals, and what is no path. */
function mutatePath(path: string, kind: number, position: number): string {
  const at = position % (path.length + 1)
  const slash = path.indexOf('/', Math.max(1, at))
  const insert = (text: string) => path.slice(0, at) + text + path.slice(at)
  const insertSegment = (text: string) => (slash < 0 ? path + text : path.slice(0, slash) + text + path.slice(slash))
  const mutations: (() => string)[] = [
    () => (at < path.length ? `${path.slice(0, at)}%${path.charCodeAt(at).toString(16).padStart(2, '0')}${path.slice(at + 1)}` : path),
    () => insertSegment('/..'),
    () => insertSegment('/%2e%2e'),
    () => insertSegment('/../..'),
    () => insertSegment('/.'),
    () => insertSegment('/'),
    () => insertSegment('%2f..%2f'),
    () => insertSegment('/..%5c'),
    () => insertSegment('\\..\\'),
    () => insertSegment(';a=b'),
    () => insert('%00'),
    () => insert('%zz'),
    () => insert('%c0%ae'),
    () => insert('%ed%a0%80'),
    () => insert('\xff\xfe'),
    () => insert('?'),
    () => insert('#'),
    () => insert('//'),
    () => insert(' '),
    () => insert('\t'),
    () => insert('x'.repeat(9_000)),
    () => insert('/a'.repeat(2_000)),
    () => `${path}/`,
    () => `${path}?${'a=b&'.repeat(500)}`,
    () => path.toUpperCase(),
    () => path.slice(1),
    () => `/${path}`,
    () => `http://localhost${path}`,
    () => `https://user:password@evil.example:99999${path}`,
    () => `//evil.example${path}`,
    () => `//[${path}`,
    () => '*',
    () => path.slice(0, at),
    () => '',
  ]
  return mutations[kind % mutations.length]!()
}

function changedText(text: string, kind: number, position: number, noise: string): string {
  const at = position % (text.length + 1)
  const changes = [
    text.slice(0, at),
    text.slice(0, at) + noise + text.slice(at + noise.length),
    text.slice(0, at) + noise + text.slice(at),
    noise,
    text + text,
  ]
  return changes[kind % changes.length]!
}

const hugeBodies = oneOf(
  '{"a":'.repeat(20_000),
  '['.repeat(100_000),
  `{"token":"${'x'.repeat(20_000)}"}`,
  `{"ID":"${'x'.repeat(70_000)}"}`,
  json(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key-${index}`, index]))),
  '\0'.repeat(1_100_000),
  `${'line\n'.repeat(30_000)}`,
  '\xff\xfe\xfd'.repeat(5_000),
  '\x1b[2J\x1b]0;x\x07'.repeat(100),
  'x'.repeat(200_000),
)

const framings = fc.oneof(
  { weight: 30, arbitrary: fc.constant<Framing>('length') },
  { weight: 4, arbitrary: fc.constant<Framing>('chunked') },
  {
    weight: 5,
    arbitrary: oneOf<Framing[]>(
      ...([
        'gzip',
        'too-long',
        'too-short',
        'huge-length',
        'bad-length',
        'two-lengths',
        'length-and-chunked',
        'bad-chunk',
        'pipelined',
      ] as const),
      ...(['truncated', 'aborted'] as const),
    ),
  },
)

const extraHeaders = fc.oneof(
  { weight: 6, arbitrary: fc.constant<[string, string][]>([]) },
  {
    weight: 1,
    arbitrary: fc.array(
      oneOf<[string, string][]>(
        ['Accept-Encoding', 'gzip, br'],
        ['Content-Type', 'application/json'],
        ['Content-Type', 'multipart/form-data; boundary=x'],
        ['Content-MD5', 'AAAA'],
        ['Content-Encoding', 'gzip'],
        ['Expect', '100-continue'],
        ['Expect', 'x'],
        ['Upgrade', 'h2c'],
        ['Connection', 'close'],
        ['Connection', 'upgrade, http2-settings'],
        ['Range', 'bytes=0-1,5-3,-9999999999'],
        ['If-None-Match', '"x"'],
        ['Host', 'evil.example'],
        ['Host', ''],
        ['X-Forwarded-For', '127.0.0.1'],
        ['X-Remote-User', 'system:admin'],
        ['Impersonate-User', 'system:admin'],
        ['X-HTTP-Method-Override', 'DELETE'],
        ['Cookie', 'a=b;'.repeat(1_000)],
        ['X-Long', 'y'.repeat(20_000)],
        ['Oarlock-Epoch', '2'],
        ['Oarlock-Sequence', '9007199254740991'],
      ),
      { maxLength: 4 },
    ),
  },
)

const methods = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'LOCK',
  'UNLOCK',
  'HEAD',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'get',
  'G\u00cbT',
  'X'.repeat(300),
]

/** A valid request, as the starting point. */
export type Valid = {
  method: string
  path: string
  credentials: readonly string[]
  body?: string
  headers?: readonly (readonly [string, string])[]
}

const anyCredential = oneOf(
  ...[
    'none',
    'none',
    'guest',
    'editor',
    'worker',
    'ended-worker',
    'other-worker',
    'expired',
    'stack-token',
    'join-credential',
    'changed:worker',
  ],
  ...[
    'changed:editor',
    'Bearer',
    'Bearer ',
    'Bearer x',
    `Bearer ${'x'.repeat(10_000)}`,
    'Bearer a.b.c',
    'Basic eDp5',
    'Basic %%%',
    'Basic ',
    'Digest x',
  ],
  ...['Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ.', 'Bearer \u00ff', '\u0001'],
)

/** One request in three is changed in each of these ways, so that some are valid and some wrong in several ways. */
export function mutated(valid: fc.Arbitrary<Valid>, addresses: readonly string[]): fc.Arbitrary<EndpointRequest> {
  const sometimes = <T>(arbitrary: fc.Arbitrary<T>, weight = 5) =>
    fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
  const position = fc.nat(10_000)
  return fc
    .record({
      valid,
      address: oneOf(...addresses),
      method: sometimes(oneOf(...methods)),
      path: sometimes(fc.tuple(fc.nat(100), position), 3),
      credential: fc.tuple(fc.nat(100), sometimes(anyCredential)),
      body: sometimes(
        fc.oneof(
          { weight: 12, arbitrary: fc.tuple(fc.nat(100), position, bytes(6)).map(change => ({ change })) },
          { weight: 4, arbitrary: bytes(300).map(text => ({ text })) },
          { weight: 4, arbitrary: fc.jsonValue({ maxDepth: 3 }).map(value => ({ text: json(value) })) },
          { weight: 1, arbitrary: hugeBodies.map(text => ({ text })) },
        ),
        3,
      ),
      headers: extraHeaders,
      framing: framings,
    })
    .map(({ valid, address, method, path, credential: [choice, other], body, headers, framing }) => {
      const text = valid.body ?? ''
      return {
        address,
        method: method ?? valid.method,
        path: path ? mutatePath(valid.path, ...path) : valid.path,
        credential: other ?? valid.credentials[choice % valid.credentials.length]!,
        headers: [...(valid.headers ?? []), ...headers],
        body: body === undefined ? text : 'text' in body ? body.text : changedText(text, ...body.change),
        framing,
      }
    })
}
