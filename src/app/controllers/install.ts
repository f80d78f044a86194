import { oarlockResources, systemNamespace, workersNamespace } from '../../api/index.ts'
import { type Client, crdResource, installKinds, namespaceResource } from '../../kubernetes/client/index.ts'
import { describeResource } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { applyManifests, type ManifestsOptions, oarlockManifests } from '../manifests/index.ts'

/**
 * The revision of Oarlock's CRDs, roles and policies: a number that every change raises (`install.test.ts` has the digest that belongs to it).
 * It is recorded in two places, because CRDs can be upgraded alone ({@link upgradeCrds}): in an annotation of each CRD, so that a controller finds out
 * whether a server has what it needs, and for roles and policies in one of the ClusterRole `oarlock:controller`.
 */
export const crdRevision = 47
export const crdRevisionAnnotation = 'oarlock.dev/crd-revision'
export const policyRevisionAnnotation = 'oarlock.dev/policy-revision'

const annotatedRole = 'oarlock:controller'

const clusterRoleResource = describeResource<object>({
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
})

/** The CRDs of Oarlock in a server, as seen by this version. */
export type CrdState =
  | { kind: 'current' }
  /** Installed by a newer version. Its schemas contain everything that this version needs. */
  | { kind: 'newer'; revision: number }
  | { kind: 'missing'; names: readonly string[] }
  | { kind: 'older'; revision: number }

/** Compares the CRDs of a server with those of this version. CRDs without a revision were installed before there was one. */
export async function readCrdState(client: Client): Promise<CrdState> {
  const crds = client.resource(crdResource)
  const names = oarlockResources.map(({ plural, group }) => `${plural}.${group}`)
  const found = await Promise.all(names.map(name => crds.getOrUndefined(name)))
  const revisions = found.map(crd => Number(crd?.metadata.annotations?.[crdRevisionAnnotation] ?? 0) || 0)
  // One newer CRD suffices: a newer version may have been stopped while it installed them.
  const newest = Math.max(...revisions)
  if (newest > crdRevision) return { kind: 'newer', revision: newest }
  const missing = names.filter((_, index) => found[index] === undefined)
  if (missing.length > 0) return { kind: 'missing', names: missing }
  const oldest = Math.min(...revisions)
  return oldest === crdRevision ? { kind: 'current' } : { kind: 'older', revision: oldest }
}

/**
 * Whether a server lacks roles and policies of this revision; false for newer ones.
 * @throws {StatusError} Forbidden if the user may not read ClusterRoles.
 */
export async function needsPolicies(client: Client): Promise<boolean> {
  const role = await client.resource(clusterRoleResource).getOrUndefined(annotatedRole)
  return (Number(role?.metadata.annotations?.[policyRevisionAnnotation] ?? 0) || 0) < crdRevision
}

/** What a server has, as the predicate of a sentence: `has CRDs of revision 3`. */
export function describeCrdState(state: CrdState): string {
  switch (state.kind) {
    case 'current':
      return `has CRDs of revision ${crdRevision}`
    case 'newer':
      return `has newer CRDs, of revision ${state.revision}`
    case 'older':
      return `has CRDs of revision ${state.revision}, and this version needs ${crdRevision}`
    case 'missing':
      return `lacks the CRDs ${state.names.join(', ')}`
  }
}

/**
 * Installs or upgrades the CRDs only, without roles and policies, and waits until the server serves them. Nothing is changed unless the server accepts all of them.
 * @throws {StatusError} if it rejects one.
 */
export async function upgradeCrds(client: Client): Promise<void> {
  const crds = client.resource(crdResource)
  await Promise.all(oarlockResources.map(kind => crds.apply(kind.toCrd(), { force: true, dryRun: true })))
  await installKinds(client, oarlockResources)
  await recordCrdRevision(client)
}

/**
 * Checks that a data directory was not used by a newer version, whose objects may have fields that the schemas of this version drop.
 * @throws {AppStartError} if it was; no object of Oarlock was changed then.
 */
export async function requireNoNewerCrds(client: Client, dataDir: string): Promise<void> {
  const state = await readCrdState(client)
  if (state.kind !== 'newer') return
  throw new AppStartError(
    'DataDirectory',
    `${dataDir} was used by a newer version of oarlock: its CRDs have revision ${state.revision}, this version supports up to ${crdRevision}`,
    'run the newer version again, or restore a backup that was made before the upgrade',
  )
}

/** Installs or upgrades Oarlock's kinds, namespaces, roles and admission policies, and waits until the server serves the kinds. */
export async function installOarlock(client: Client): Promise<void> {
  const namespaces = client.resource(namespaceResource)
  await Promise.all([
    installKinds(client, oarlockResources),
    ...[systemNamespace, workersNamespace].map(name => namespaces.apply({ metadata: { name } }, { force: true })),
  ])
  await applyManifests(client)
  // Last: an installation that was interrupted before its policies were applied must not count as complete.
  const annotations = { [policyRevisionAnnotation]: String(crdRevision) }
  await client.resource(clusterRoleResource).patch(annotatedRole, { metadata: { annotations } } as object, { type: 'merge' })
  await recordCrdRevision(client)
}

async function recordCrdRevision(client: Client): Promise<void> {
  const crds = client.resource(crdResource)
  const annotations = { [crdRevisionAnnotation]: String(crdRevision) }
  await Promise.all(
    oarlockResources.map(({ plural, group }) =>
      crds.patch(`${plural}.${group}`, { metadata: { annotations } } as object, { type: 'merge' }),
    ),
  )
}

/** Everything that {@link installOarlock} applies to a server with or without admission policies, to print it, in the order in which it is applied. */
export function installationObjects(options: ManifestsOptions): readonly object[] {
  const annotations = { [crdRevisionAnnotation]: String(crdRevision) }
  const namespaces = [systemNamespace, workersNamespace].map(name => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
  const crds = oarlockResources.map(resource => {
    const crd = resource.toCrd()
    return { ...crd, metadata: { ...crd.metadata, annotations } }
  })
  const manifests = oarlockManifests(options).map(manifest => {
    const { kind, metadata } = manifest
    if (kind !== 'ClusterRole' || metadata.name !== annotatedRole) return manifest
    return { ...manifest, metadata: { ...metadata, annotations: { [policyRevisionAnnotation]: String(crdRevision) } } }
  })
  return [...namespaces, ...crds, ...manifests]
}
