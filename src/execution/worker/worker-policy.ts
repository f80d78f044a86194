import { isolationLevels, networks, type RunPolicy } from '../../api/index.ts'
import { checkQuantity, parseList, parsePairs } from './worker-capabilities.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/**
 * Reads what a worker requires of its Runs: OARLOCK_MINIMUM_ISOLATION (such as `Sandbox`), OARLOCK_ALLOWED_NETWORKS (such as `Private,None`) and
 * OARLOCK_MAX_RESOURCES (such as `cpu=2,memory=2Gi,pids=500,disk=10Gi`).
 * @throws {WorkerOptionError} naming the variable, its value and what is allowed.
 */
export function policyFromEnv(env: Readonly<Record<string, string | undefined>>): RunPolicy {
  const [minimumIsolation] = parseList('OARLOCK_MINIMUM_ISOLATION', env.OARLOCK_MINIMUM_ISOLATION, isolationLevels) ?? []
  const allowedNetworks = parseList('OARLOCK_ALLOWED_NETWORKS', env.OARLOCK_ALLOWED_NETWORKS, networks)
  const maxResources = parseMaximums('OARLOCK_MAX_RESOURCES', env.OARLOCK_MAX_RESOURCES)
  return {
    ...(minimumIsolation && { minimumIsolation }),
    ...(allowedNetworks && { allowedNetworks }),
    ...(maxResources && { maxResources }),
  }
}

function parseMaximums(name: string, text: string | undefined): RunPolicy['maxResources'] {
  if (!text) return undefined
  const { cpu, memory, disk, pids, ...others } = parsePairs(name, text.split(','))
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new WorkerOptionError(`${name} contains ${JSON.stringify(unknown)}; it must be cpu, memory, pids or disk`)
  for (const [field, value] of Object.entries({ cpu, memory, disk, pids })) checkQuantity(`${name}: ${field}`, value)
  if (pids && !/^[1-9][0-9]*$/.test(pids))
    throw new WorkerOptionError(`${name}: pids ${JSON.stringify(pids)} must be a whole number above 0`)
  return { ...(cpu && { cpu }), ...(memory && { memory }), ...(disk && { disk }), ...(pids && { pids: Number(pids) }) }
}
