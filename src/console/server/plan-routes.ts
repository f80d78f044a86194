import { runResource } from '../../api/index.ts'
import type { Call, Routes } from './route.ts'

export const planRoutes: Routes = { 'GET plans': planOf }

/** The plan that a Run has stored, or the approved one that it applies, as the store has it: parsing 16 MiB takes 0.2 s. */
async function planOf({ client, path: [namespace = '', name = ''] }: Call) {
  const stores = await client()
  const { spec } = await stores.resource(runResource).get(name, { namespace })
  const planned = spec.approvedPlan?.runName ?? name
  const path = ['state', namespace, spec.stackRef.name, 'diff', planned].map(encodeURIComponent).join('/')
  return Buffer.from(await (await stores.request({ method: 'GET', path: `/${path}` })).text())
}
