/**
 * @module discovery: the documents that describe the API. Start reading at `discovery.ts`.
 * In: the registry. Out: `/api`, `/apis`, aggregated discovery, OpenAPI v2 and v3, `/version`.
 * Out of scope: routes (http/), health (http/).
 */
export { Discovery, type DiscoveryResponse, kubernetesVersion } from './discovery.ts'
