/**
 * @module kubernetes: the Kubernetes toolkit, which can be used without Oarlock. Published as `oarlock/kubernetes` (this file), with an entry
 * point per module: `oarlock/client`, `oarlock/controller`, `oarlock/server`, `oarlock/testing`.
 * In: objects, schemas, kubeconfigs. Out: typed clients, a controller runtime, an embedded API server.
 * Modules, each importing only those before it: `util/`, `object/`, `cel/`, `schema/`, `apply/`, then `client/` and `server/`, then
 * `controller/`, then `testing/`. Nothing here imports the rest of Oarlock.
 */
import './util/check-node-version.ts'

export * from './apply/index.ts'
export * from './object/index.ts'
export * from './schema/index.ts'
