import { type Authorization, checkEscalation, type Rbac, rbacGroup } from '../auth/index.ts'
import type { AdmissionPlugin } from '../rest/index.ts'

/** What stands between a writer and a role or binding, by table: nobody gives away what they do not have. */
export function roleGuards(rbac: Rbac, { authorize }: Authorization): ReadonlyMap<string, AdmissionPlugin> {
  const guard: AdmissionPlugin = ({ user, kind, name }, object, before) =>
    checkEscalation(rbac, authorize, { user, plural: kind.plural, name, object, before })
  return new Map(['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'].map(plural => [`${plural}.${rbacGroup}`, guard]))
}
