import { appsRules } from './apps-rules.ts'
import { autoscalingRules } from './autoscaling-rules.ts'
import { batchRules } from './batch-rules.ts'
import { containerRules } from './container-rules.ts'
import { csiRules } from './csi-rules.ts'
import { discoveryRules } from './discovery-rules.ts'
import { networkingRules } from './networking-rules.ts'
import { podRules } from './pod-rules.ts'
import { policyRules } from './policy-rules.ts'
import { priorityClassRules } from './priority-class-rules.ts'
import { schedulingRules } from './scheduling-rules.ts'
import { selectorRules } from './selector-rules.ts'
import { serviceRules } from './service-rules.ts'
import { storageClassRules } from './storage-class-rules.ts'
import type { RuleTable, TypeRules } from './type-rules.ts'
import { volumeRules } from './volume-rules.ts'

/** The rules of each file in this folder. */
const tables: readonly RuleTable[] = [
  podRules,
  containerRules,
  volumeRules,
  schedulingRules,
  selectorRules,
  serviceRules,
  appsRules,
  batchRules,
  autoscalingRules,
  networkingRules,
  policyRules,
  priorityClassRules,
  storageClassRules,
  csiRules,
  discoveryRules,
]

let all: ReadonlyMap<string, TypeRules> | undefined

/** The rules of each type, by names such as `core.v1.Container`. */
export function ruleTable(): ReadonlyMap<string, TypeRules> {
  all ??= new Map(tables.flatMap(table => Object.entries(table)))
  return all
}
