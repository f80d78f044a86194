import { type AdmissionPlugin, type Authorization, checkEscalation, type Rbac, rbacGroup } from '../auth/index.ts'

/** The admission plugins, by table, that prevent privilege escalation: a user cannot grant permissions that the user does not hold. */
export function rbacAdmissionPlugins(rbac: Rbac, { authorize }: Authorization): ReadonlyMap<string, AdmissionPlugin> {
  const plugin: AdmissionPlugin = ({ user, kind, name }, object, oldObject) => {
    checkEscalation(rbac, authorize, { user, plural: kind.plural, name, object, oldObject })
    return undefined
  }
  return new Map(['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'].map(plural => [`${plural}.${rbacGroup}`, plugin]))
}
