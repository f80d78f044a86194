/**
 * @module app/partition: an API server that is one partition of several behind a gateway. Start reading at `start-home.ts`, then
 * `start-partition.ts`.
 * In: a data directory; for all but home a configuration that home has issued (`issue-configuration.ts`). Out: the server, its address at home, and
 * copies of home's objects.
 * Out of scope: what belongs where (`gateway/`), how copies are decided (`controllers/replication/`).
 */
export { formatConfiguration, type GatewayConfiguration, type PartitionConfiguration, readConfiguration } from './configuration.ts'
export { issueGatewayConfiguration, issuePartitionConfiguration } from './issue-configuration.ts'
export { removeAtHome } from './remove-at-home.ts'
