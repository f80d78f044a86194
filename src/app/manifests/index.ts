/**
 * @module app/manifests: roles, bindings and admission policies of Oarlock, each declared once. Start reading at `manifests.ts`.
 * In: none. Out: objects to apply or to print.
 *
 * | file | what it restricts |
 * |---|---|
 * | `user-roles.ts` | users: `view`, `edit` and `admin` by aggregation |
 * | `component-roles.ts` | the processes of an installation: controller, stores, join service, pool |
 * | `worker-roles.ts` | workers, with one ServiceAccount each |
 * | `pod-worker-policies.ts` | worker Pods, whose ServiceAccount several have in common |
 * | `user-policies.ts` | users: what RBAC cannot |
 * | `external-metrics.ts` | controllers that serve `external.metrics.k8s.io` |
 * | `admission-policies.ts` | what RBAC cannot: fields, and objects by whose they are |
 *
 * `policy.ts` and `rule.ts` have the form of policies, roles and bindings. `compare-manifests.ts` and `missing-rights.ts` compare them with what a server has.
 *
 * Out of scope: states, plans and logs, which are no objects (`../stores/store-access.ts`); the embedded server (`../api-server/`).
 */

export { compareManifests, type ManifestDifferences } from './compare-manifests.ts'
export { runInputsRole } from './component-roles.ts'
export { externalMetricsManifests } from './external-metrics.ts'
export {
  applyManifests,
  applyNamespacedManifests,
  applyObjects,
  deleteObjects,
  type ManifestsOptions,
  oarlockManifests,
  retiredObjects,
  servesPolicies,
} from './manifests.ts'
export { isAllowed, missingAccountRights, missingRights } from './missing-rights.ts'
export { podWorkerBindings, rightsOfWorker } from './worker-roles.ts'
