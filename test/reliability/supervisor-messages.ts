import { join } from 'node:path'
import fc from 'fast-check'

/** What messages may name. All of it exists. */
export type SupervisedHost = {
  runsDir: string
  /** A directory that belongs to no Run, with one of a Run's name in it. */
  otherDir: string
  /** Runs whose directories exist. */
  uids: readonly string[]
  /** A process that supervisors may kill, as that of a worker. */
  worker: { pid: number; startTime: string }
  /** The leader of a group that is not of any Run here. */
  foreignPid: number
  /** The leader of a group of the first Run. */
  enginePid: number
  supervisorPid: number
  nowMs: number
}

/** One connection: the bytes that a client sends, as latin1 text in pieces, and how it ends. */
export type SupervisorConnection = { pieces: readonly string[]; end: 'end' | 'destroy'; messages: number }

const oneOf = <const T extends readonly unknown[]>(...values: T): fc.Arbitrary<T[number]> => fc.constantFrom<T[number]>(...values)
const mostly = (usual: readonly unknown[], unusual: readonly unknown[], weight = 12): fc.Arbitrary<unknown> =>
  fc.oneof({ weight, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constantFrom(...unusual) })

const wrongTexts = ['', '..', '.', '/', 'a/b', 'a\0b', 'x'.repeat(200), 'x'.repeat(70_000), 5, null, {}, [], true, '\ud800', '__proto__']
/** None names a directory that exists, also not for a supervisor without any check: it removes directories. */
const wrongPaths = ['relative', 'no/such', '/no/such/directory', 'a\0b', '/x'.repeat(5_000), 5, null, {}, [], true, '\ud800', '__proto__']
const wrongNumbers = [-1, 0, 1, 1.5, -1e308, 1e308, 2 ** 31, 2 ** 32 + 5, 2 ** 53, '5', null, {}, [7], true, '', -0]

/** Valid messages; in about one of ten fields a value is of another type or out of bounds. Then some are changed as text. */
export function supervisorConnections(host: SupervisedHost): fc.Arbitrary<SupervisorConnection> {
  const { runsDir, otherDir, uids, worker, foreignPid, enginePid, supervisorPid, nowMs } = host
  const uid = mostly(uids, [...wrongTexts, 'no-such-run'])
  const identity = fc.record({
    id: mostly(['a', 'b', 'c'], wrongTexts),
    pid: mostly([worker.pid], [foreignPid, supervisorPid, 2 ** 22 + 1, ...wrongNumbers]),
    // Never that of a process that must not be killed.
    startTime: mostly([worker.startTime], ['0', ...wrongTexts]),
  })
  const workerIdentity = mostlyValid(identity)
  const time = (value: number) => mostly([value], wrongNumbers)
  const times = fc.record({ interruptMs: time(900), terminateMs: time(1_200), killMs: time(1_500) })
  const at = mostly([nowMs, nowMs + 1_000], [nowMs + 1e12, ...wrongNumbers])
  const run = fc
    .record({
      uid,
      // All below the directory of the test.
      wrongDirectory: mostly(
        [undefined],
        [
          otherDir,
          runsDir,
          join(runsDir, '..'),
          `${runsDir}/${uids[0]}/..`,
          join(otherDir, 'documents'),
          join(otherDir, uids[0]!),
          ...wrongPaths,
        ],
      ),
      salvage: fc.oneof(
        { weight: 1, arbitrary: fc.constant(undefined) },
        {
          weight: 1,
          arbitrary: mostlyValid(
            fc.record(
              {
                url: mostly(['http://127.0.0.1:1/state/a/b/run/c/state'], ['file:///x', 'http://', 'x', ...wrongTexts]),
                token: mostly(['token'], ['x\r\ny: z', ...wrongTexts]),
                epoch: mostly([1], wrongNumbers),
                path: mostly([join(runsDir, uids[0]!, 'state')], [join(otherDir, 'documents', 'file'), ...wrongPaths]),
                socketPath: mostly([undefined], wrongPaths),
                caCertificate: mostly([undefined], wrongTexts),
              },
              { requiredKeys: ['url', 'token', 'epoch', 'path'] },
            ),
          ),
        },
      ),
      interrupt: mostly([undefined, 'Program', 'Group'], wrongTexts),
      endsByMs: mostly([undefined, nowMs + 60_000], [nowMs - 1, ...wrongNumbers]),
    })
    .map(({ wrongDirectory, ...spec }) => ({
      ...spec,
      directory: wrongDirectory ?? join(runsDir, typeof spec.uid === 'string' ? spec.uid.replace(/[./\0]/g, '_') : 'no-such'),
    }))
  const group = mostly([enginePid, foreignPid], [supervisorPid, worker.pid, 2 ** 22 + 1, ...wrongNumbers], 4)
  const hello = fc.record({
    kind: oneOf('hello'),
    worker: workerIdentity,
    times: mostlyValid(times),
    runsDir: mostly([runsDir], [otherDir, ...wrongPaths]),
    renewedAtMs: at,
  })
  const message = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: oneOf('run'), run: mostlyValid(run) }) },
    { weight: 8, arbitrary: fc.record({ kind: oneOf('renewed'), worker: workerIdentity, atMs: at }) },
    { weight: 12, arbitrary: fc.record({ kind: oneOf('started', 'started', 'ended'), uid, processGroupId: group }) },
    { weight: 8, arbitrary: fc.record({ kind: oneOf('interrupted', 'done', 'done', 'abandoned'), uid }) },
    { weight: 3, arbitrary: fc.record({ kind: oneOf('saved'), uid, digest: mostly(['d'.repeat(64)], wrongTexts) }) },
    { weight: 2, arbitrary: fc.record({ kind: oneOf('credential'), token: mostly(['token'], wrongTexts) }) },
    { weight: 1, arbitrary: fc.record({ kind: oneOf('disconnect') }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: oneOf<unknown[]>('', 'later', '__proto__', 'constructor', 'toString', 'ready', 5, null, {}), uid }),
    },
    { weight: 1, arbitrary: hello },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
  )
  const line = fc
    .record({
      message,
      noise: fc.oneof(
        { weight: 25, arbitrary: fc.constant(undefined) },
        {
          weight: 1,
          arbitrary: fc.tuple(fc.nat(400), fc.string({ maxLength: 5, unit: fc.nat(255).map(code => String.fromCharCode(code)) })),
        },
      ),
      end: fc.oneof(
        { weight: 40, arbitrary: fc.constant('\n') },
        { weight: 1, arbitrary: oneOf('', '\r\n', '\n\n', '\0\n', '\xff\xfe\n', ' ') },
      ),
    })
    .map(({ message, noise, end }) => {
      const text = Buffer.from(JSON.stringify(message)).toString('latin1')
      return (noise === undefined ? text : text.slice(0, noise[0]) + noise[1] + text.slice(noise[0] + noise[1].length)) + end
    })
  const whole = oneOf(
    'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    '',
    '\n',
    '[]\n',
    'null\n',
    `${'['.repeat(200_000)}\n`,
    `{"kind":"${'x'.repeat(1_100_000)}`,
    '\0'.repeat(1_000),
    `${'{"a":'.repeat(20_000)}\n`,
  )
  return fc
    .record({
      hello: fc.oneof(
        { weight: 8, arbitrary: hello.map(value => `${JSON.stringify(value)}\n`) },
        { weight: 1, arbitrary: fc.constant('') },
      ),
      lines: fc.oneof(
        { weight: 60, arbitrary: fc.array(line, { minLength: 1, maxLength: 12 }) },
        { weight: 1, arbitrary: whole.map(text => [text]) },
      ),
      cut: fc.nat(300),
      end: oneOf<('end' | 'destroy')[]>('end', 'end', 'end', 'destroy'),
    })
    .map(({ hello, lines, cut, end }) => {
      const text = hello + lines.join('')
      // Messages are divided anywhere by a socket.
      const pieces = cut < text.length ? [text.slice(0, cut), text.slice(cut)] : [text]
      return { pieces, end, messages: lines.length + (hello === '' ? 0 : 1) }
    })
}

/** Sometimes another JSON value, or without one of its fields. */
function mostlyValid<T extends object>(valid: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  const withoutOne = fc.tuple(valid, fc.nat(10)).map(([value, index]) => {
    const entries = Object.entries(value)
    return Object.fromEntries(entries.toSpliced(index % entries.length, 1))
  })
  return fc.oneof(
    { weight: 25, arbitrary: valid },
    { weight: 1, arbitrary: withoutOne },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  )
}
