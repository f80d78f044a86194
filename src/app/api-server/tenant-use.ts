import { tenantResource } from '../../api/index.ts'
import { tenantLabel } from '../../gateway/index.ts'
import type { AdmissionPlugin } from '../../kubernetes/server/index.ts'

/**
 * For Namespaces of a partition: the Tenant in the label `oarlock.dev/tenant` is set, changed and removed by users with the right to `use` it (both Tenants, if it
 * is changed). The gateway checks it for a creation only, and a client may use a partition directly.
 */
export const tenantUse: AdmissionPlugin = ({ isAllowed }, object, oldObject) => {
  const before = oldObject?.metadata.labels?.[tenantLabel]
  const after = object.metadata.labels?.[tenantLabel]
  if (before === after) return undefined
  const { group, plural } = tenantResource
  const denied = [before, after].find(tenant => tenant !== undefined && !isAllowed({ verb: 'use', group, resource: plural, name: tenant }))
  if (denied === undefined) return undefined
  return `label ${tenantLabel}: you may not use the Tenant ${JSON.stringify(denied)}: you need the verb "use" on ${plural}.${group} with this name`
}
