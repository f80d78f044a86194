import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, type NewObject } from '../../kubernetes/object/index.ts'
import { admissionPolicies } from './admission-policies.ts'
import { componentRoles, runInputsEverywhere } from './component-roles.ts'
import { externalMetricsManifests } from './external-metrics.ts'
import type { Manifest } from './rule.ts'
import { userRoles } from './user-roles.ts'
import { workerRoles } from './worker-roles.ts'

/**
 * All objects, without namespaces and CRDs.
 * @param options.policies for a server without Oarlock's authorizer. Without policies, RBAC would grant workers more than they need.
 * @param options.externalMetrics for controllers with `--external-metrics`. Default: false.
 */
export function oarlockManifests({ policies, externalMetrics = false }: ManifestsOptions): readonly Manifest[] {
  const optional = externalMetrics ? externalMetricsManifests : []
  return [...(policies ? admissionPolicies() : []), ...rolesAndBindings(policies), ...optional]
}

const rolesAndBindings = (policies: boolean): readonly Manifest[] => [
  ...userRoles,
  ...componentRoles,
  ...(policies ? workerRoles : [runInputsEverywhere]),
]

export type ManifestsOptions = { policies: boolean; externalMetrics?: boolean | undefined }

/** Of earlier versions: they would allow workers to read every Secret of some namespaces. */
export const retiredObjects: readonly Manifest[] = [
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'oarlock:worker-inputs' } },
  ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map(kind => ({
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind },
    metadata: { name: 'oarlock-worker-outputs' },
  })),
]

/**
 * Applies all objects that the server supports: the embedded server serves no policies, and its authorizer restricts workers instead.
 * The namespaces must exist. Needs every permission that the roles grant, as a cluster administrator has them.
 */
export async function applyManifests(client: Client): Promise<void> {
  const hasPolicies = await servesPolicies(client)
  // First: they restrict what the roles grant.
  if (hasPolicies) await applyObjects(client, admissionPolicies())
  await applyObjects(client, rolesAndBindings(hasPolicies))
  if (hasPolicies) await deleteObjects(client, retiredObjects)
}

/** Applies the roles and bindings in Oarlock's namespaces, to a partition that has copies of all the rest. The namespaces must exist. */
export async function applyNamespacedManifests(client: Client): Promise<void> {
  await applyObjects(
    client,
    rolesAndBindings(false).filter(({ metadata }) => metadata.namespace !== undefined),
  )
}

/** Applies objects in no particular order. */
export async function applyObjects(client: Client, manifests: readonly Manifest[]): Promise<void> {
  await Promise.all(
    manifests.map(async manifest => {
      const resource = await client.discover(manifest.apiVersion, manifest.kind)
      await client.resource(resource).apply(manifest as NewObject<object>, { force: true })
    }),
  )
}

/** Deletes objects; one that does not exist is no error. */
export async function deleteObjects(client: Client, manifests: readonly Manifest[]): Promise<void> {
  await Promise.all(
    manifests.map(async ({ apiVersion, kind, metadata: { name, namespace } }) => {
      const resource = client.resource(await client.discover(apiVersion, kind))
      await resource.delete(name, { namespace }).catch((error: unknown) => {
        if (!isReason(error, 'NotFound')) throw error
      })
    }),
  )
}

/** Whether the server has ValidatingAdmissionPolicies: Kubernetes does, the embedded server does not. */
export async function servesPolicies(client: Client): Promise<boolean> {
  try {
    await client.discover('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy')
    return true
  } catch (error) {
    if (isReason(error, 'NotFound')) return false
    throw error
  }
}
