/**
 * @module discovery: what clients ask to learn which resources there are. Start reading at `discovery.ts`.
 * In: the registry. Out: `/api`, `/apis`, their aggregated form, OpenAPI v2 and v3, `/version`.
 */
export { Discovery, type DiscoveryResponse, kubernetesVersion } from './discovery.ts'
