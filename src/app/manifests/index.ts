/**
 * @module app/manifests: roles, bindings and admission policies of Oarlock, each declared once. Start reading at `manifests.ts`.
 * In: none. Out: objects to apply or to print.
 *
 * | file | what it restricts |
 * |---|---|
 * | `user-roles.ts` | users: `view`, `edit` and `admin` by aggregation |
 * | `component-roles.ts` | the processes of an installation: controller, stores, join service, pool |
 * | `worker-roles.ts` | workers, with one ServiceAccount each |
 * | `admission-policies.ts` | what RBAC cannot: fields, and objects by whose they are |
 *
 * Out of scope: states, plans and logs, which are no objects (`../stores/store-access.ts`); the embedded server (`../api-server/`).
 */

export { applyManifests, applyObjects, deleteObjects, oarlockManifests } from './manifests.ts'
export { missingRights } from './missing-rights.ts'
export { rightsOfWorker } from './worker-roles.ts'
