import type { Stack } from '../../../api/index.ts'
import { badRequest, StatusError } from '../../../kubernetes/object/index.ts'
import { describeHolder, type VersionInfo } from '../../../stores/state/index.ts'
import type { StateVersion, StateVersions } from '../../protocol/index.ts'
import { whyNotAllowed } from '../available-actions.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { expectManaged, StoredState, sizeOf, stateKindOf } from './stored-state.ts'

/** The stored versions and the rejected ones, with why each cannot become the current one again. */
export async function stateVersions(request: StackRequest): Promise<StateVersions> {
  const stack = await readStack(request)
  expectManaged(stack)
  const state = new StoredState(request)
  const [versions, orphans, lock] = await Promise.all([state.versions(), state.orphans(), state.lock()])
  const whyNoRollback = await whyNotAllowed([{ verb: 'update', resource: 'stacks', subresource: 'state' }], request.rights)
  return {
    versions: [
      ...versions.map(version => describeVersion(version, versions, stack)),
      ...orphans.map(orphan => ({
        ...describeVersion(orphan, [], stack),
        orphanReason: orphan.reason,
        whyNoRollback: `it was rejected: "oarlock state recover ${request.name} -n ${request.namespace} --version ${orphan.version}" shows what it has`,
      })),
    ].sort((a, b) => b.version - a.version),
    ...(lock && { lock: { holder: describeHolder(lock.holder), sinceMs: lock.sinceMs } }),
    ...(whyNoRollback !== undefined && { whyNoRollback }),
  }
}

function describeVersion(version: VersionInfo, all: readonly VersionInfo[], stack: Stack): StateVersion {
  const isCurrent = currentOf(all, version.kind)?.version === version.version
  const why = rollbackProblem(version, all, stack)
  const { kind, epoch, author, size, createdMs } = version
  return {
    version: version.version,
    kind,
    epoch,
    author,
    bytes: size,
    createdMs,
    isCurrent,
    ...(why !== undefined && { whyNoRollback: why }),
  }
}

/** The newest of its kind. */
export const currentOf = (versions: readonly VersionInfo[], kind: VersionInfo['kind']): VersionInfo | undefined =>
  versions.filter(version => version.kind === kind).toSorted((a, b) => b.version - a.version)[0]

/** Why a version cannot become the current one again, as of `oarlock state rollback`. */
export function rollbackProblem(version: VersionInfo, all: readonly VersionInfo[], stack: Stack): string | undefined {
  if (currentOf(all, version.kind)?.version === version.version) return 'it is the current version'
  if (version.kind === 'inventory') return 'it is an inventory of the engine, which cannot be rolled back'
  if (version.kind !== stateKindOf(stack)) return `it is a state of ${version.kind}, and the Stack has engine ${stack.spec.engine}`
  return version.size === 0 ? 'it is a deletion of the state' : undefined
}

/** `from` and `to` in the query are numbers of versions; without `from` the version before `to` of the same kind. `values=1` adds values. Returns a StateDiff as JSON. */
export async function stateDiff(request: StackRequest): Promise<Uint8Array> {
  expectManaged(await readStack(request))
  const state = new StoredState(request)
  const versions = await state.versions()
  const to = versionOf(versions, numberIn(request.query, 'to') ?? versions[0]?.version ?? 0)
  const fromNumber = numberIn(request.query, 'from')
  const from =
    fromNumber === undefined
      ? versions.find(({ version, kind }) => kind === to.kind && version < to.version)
      : versionOf(versions, fromNumber)
  if (from && from.kind !== to.kind)
    throw badRequest(`version ${from.version} is of kind ${from.kind}, and version ${to.version} of ${to.kind}`)
  const options = { ...(from && { from: from.version }), to: to.version, withValues: request.query.get('values') === '1' }
  return await request.tasks.withStates(sizeOf(from, to), async run => {
    const [old, now] = await Promise.all([from ? state.read(from) : '', state.read(to)])
    return await run('diffStates', old, now, options)
  })
}

/** @throws {StatusError} NotFound */
export function versionOf(versions: readonly VersionInfo[], number: number): VersionInfo {
  const version = versions.find(each => each.version === number)
  if (!version) throw new StatusError('NotFound', `version ${number} of the state is not stored: it may have been deleted since`)
  return version
}

/** @throws {StatusError} BadRequest if it is not a number. Undefined: the query does not have it. */
export function numberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name} must be the number of a version, got ${JSON.stringify(text.slice(0, 50))}`)
  return Number(text)
}
