import {
  forbiddenField,
  invalidValue,
  isJsonObject,
  nameErrors,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import { intOrPercentErrors, negativeErrors, numberOf, over100PercentErrors } from './number-checks.ts'
import { workloadSelectorErrors } from './selector-rules.ts'
import type { Fields, RuleTable } from './type-rules.ts'

/** Rules of the types in the group apps. */
export const appsRules: RuleTable = {
  'apps.v1.DeploymentSpec': {
    defaults: { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
    validate: (spec, { path }) => {
      const causes = negativeErrors(spec, path, ['replicas', 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds'])
      const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec
      if (typeof deadline === 'number' && deadline <= numberOf(minReadySeconds)) {
        causes.push(invalidValue(`${path}.progressDeadlineSeconds`, deadline, 'must be greater than minReadySeconds'))
      }
      return [...causes, ...workloadSelectorErrors(spec, path, { kind: 'deployment' }), ...templateErrors(spec, path, 'ReplicaSet')]
    },
  },
  'apps.v1.DeploymentStrategy': {
    defaults: { type: 'RollingUpdate' },
    setDefaults: strategy => {
      if (strategy.type === 'RollingUpdate') strategy.rollingUpdate ??= {}
    },
    uncheckedEnums: ['type'],
    validate: ({ type, rollingUpdate }, { path }) => {
      if (type === 'Recreate') {
        const reason = "may not be specified when strategy `type` is 'Recreate'"
        return rollingUpdate === undefined ? [] : [forbiddenField(`${path}.rollingUpdate`, reason)]
      }
      if (type === 'RollingUpdate') return deploymentRollErrors((rollingUpdate ?? {}) as Fields, `${path}.rollingUpdate`)
      return [unsupportedValue(path, formatStrategy(type, rollingUpdate), ['Recreate', 'RollingUpdate'])]
    },
  },
  'apps.v1.RollingUpdateDeployment': { defaults: { maxUnavailable: '25%', maxSurge: '25%' } },
  'apps.v1.ReplicaSetSpec': {
    defaults: { replicas: 1 },
    validate: (spec, { path }) => [
      ...negativeErrors(spec, path, ['replicas', 'minReadySeconds']),
      ...workloadSelectorErrors(spec, path, { kind: 'deployment' }),
      ...templateErrors(spec, path, 'ReplicaSet'),
    ],
  },
  'apps.v1.StatefulSetSpec': {
    defaults: { replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: 'OrderedReady' },
    setDefaults: spec => {
      spec.persistentVolumeClaimRetentionPolicy ??= {}
      // The default applies only if no type is set.
      const { type, rollingUpdate } = (spec.updateStrategy ?? {}) as Fields
      if (type === undefined) spec.updateStrategy = { type: 'RollingUpdate', rollingUpdate: rollingUpdate ?? {} }
      if (Array.isArray(spec.volumeClaimTemplates)) {
        spec.volumeClaimTemplates = spec.volumeClaimTemplates.map(claim => ({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim }))
      }
    },
    uncheckedEnums: ['podManagementPolicy'],
    validate: (spec, { path, oldObject }) => {
      const causes = negativeErrors(spec, path, ['replicas', 'minReadySeconds'])
      const { podManagementPolicy: policy, serviceName, ordinals } = spec
      if (policy !== 'OrderedReady' && policy !== 'Parallel') {
        causes.push(invalidValue(`${path}.podManagementPolicy`, policy, "must be 'OrderedReady' or 'Parallel'"))
      }
      if (isJsonObject(ordinals)) causes.push(...negativeErrors(ordinals, `${path}.ordinals`, ['start']))
      if (!oldObject && typeof serviceName === 'string' && serviceName !== '') {
        for (const reason of nameErrors(serviceName, 'dns1123Label')) causes.push(invalidValue(`${path}.serviceName`, serviceName, reason))
      }
      const selector = workloadSelectorErrors(spec, path, { kind: 'statefulset', unreadable: '' })
      return [...causes, ...selector, ...templateErrors(spec, path, 'StatefulSet')]
    },
  },
  'apps.v1.StatefulSetUpdateStrategy': {
    uncheckedEnums: ['type'],
    validate: ({ type, rollingUpdate }, { path }) => {
      if (type === 'RollingUpdate') {
        return isJsonObject(rollingUpdate) ? statefulRollErrors(rollingUpdate, `${path}.rollingUpdate`) : []
      }
      const { partition = 0, maxUnavailable = null } = (rollingUpdate ?? {}) as Fields
      const goRollingUpdate = rollingUpdate === undefined ? null : { Partition: partition, MaxUnavailable: maxUnavailable }
      if (type !== 'OnDelete') {
        return [invalidValue(path, { Type: type, RollingUpdate: goRollingUpdate }, "must be 'RollingUpdate' or 'OnDelete'")]
      }
      return goRollingUpdate
        ? [invalidValue(`${path}.rollingUpdate`, goRollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")]
        : []
    },
  },
  'apps.v1.RollingUpdateStatefulSetStrategy': { defaults: { partition: 0 } },
  'apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy': {
    defaults: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    validate: (policy, { path }) =>
      ['whenDeleted', 'whenScaled']
        .filter(field => policy[field] !== 'Retain' && policy[field] !== 'Delete')
        .map(field => unsupportedValue(`${path}.${field}`, policy[field], ['Retain', 'Delete'])),
  },
  'apps.v1.DaemonSetSpec': {
    defaults: { revisionHistoryLimit: 10 },
    validate: (spec, { path }) => [
      ...workloadSelectorErrors(spec, path, { kind: 'daemonset', isRequired: false, unreadable: null }),
      ...templateErrors(spec, path, 'DaemonSet'),
      ...negativeErrors(spec, path, ['minReadySeconds', 'revisionHistoryLimit']),
    ],
  },
  'apps.v1.DaemonSetUpdateStrategy': {
    defaults: { type: 'RollingUpdate' },
    setDefaults: strategy => {
      if (strategy.type === 'RollingUpdate') strategy.rollingUpdate ??= {}
    },
    uncheckedEnums: ['type'],
    validate: ({ type, rollingUpdate }, { path }) => {
      if (type === 'OnDelete') return []
      if (type === 'RollingUpdate') return daemonRollErrors((rollingUpdate ?? {}) as Fields, `${path}.rollingUpdate`)
      return [unsupportedValue(path, formatStrategy(type, rollingUpdate), ['RollingUpdate', 'OnDelete'])]
    },
  },
  'apps.v1.RollingUpdateDaemonSet': { defaults: { maxUnavailable: 1, maxSurge: 0 } },
}

/** A strategy as Kubernetes prints it in messages: with the field names of Go. */
function formatStrategy(type: unknown, rollingUpdate: unknown): Fields {
  const { maxUnavailable = 0, maxSurge = 0 } = (rollingUpdate ?? {}) as Fields
  return { Type: type, RollingUpdate: rollingUpdate === undefined ? null : { MaxUnavailable: maxUnavailable, MaxSurge: maxSurge } }
}

function deploymentRollErrors({ maxUnavailable, maxSurge }: Fields, path: string): StatusCause[] {
  const causes = [...intOrPercentErrors(maxUnavailable, `${path}.maxUnavailable`), ...intOrPercentErrors(maxSurge, `${path}.maxSurge`)]
  if (numberOf(maxUnavailable) === 0 && numberOf(maxSurge) === 0) {
    causes.push(invalidValue(`${path}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0'))
  }
  return [...causes, ...over100PercentErrors(maxUnavailable, `${path}.maxUnavailable`)]
}

function daemonRollErrors(roll: Fields, path: string): StatusCause[] {
  const causes = (['maxUnavailable', 'maxSurge'] as const).flatMap(field => [
    ...intOrPercentErrors(roll[field], `${path}.${field}`),
    ...over100PercentErrors(roll[field], `${path}.${field}`),
  ])
  const [unavailable, surge] = [numberOf(roll.maxUnavailable), numberOf(roll.maxSurge)]
  if (unavailable !== 0 && surge !== 0) {
    causes.push(invalidValue(`${path}.maxSurge`, roll.maxSurge, 'may not be set when maxUnavailable is non-zero'))
  }
  if (unavailable === 0 && surge === 0) causes.push(requiredValue(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'))
  return causes
}

function statefulRollErrors(roll: Fields, path: string): StatusCause[] {
  const { maxUnavailable } = roll
  const causes = negativeErrors(roll, path, ['partition'])
  if (maxUnavailable === undefined) return causes
  causes.push(...intOrPercentErrors(maxUnavailable, `${path}.maxUnavailable`))
  if (numberOf(maxUnavailable) === 0) causes.push(invalidValue(`${path}.maxUnavailable`, maxUnavailable, 'cannot be 0'))
  return [...causes, ...over100PercentErrors(maxUnavailable, `${path}.maxUnavailable`)]
}

/** The Pods of these controllers must always be restarted. */
function templateErrors(spec: Fields, path: string, controller: string): StatusCause[] {
  const { restartPolicy, activeDeadlineSeconds } = ((spec.template as Fields | undefined)?.spec ?? {}) as Fields
  const specPath = `${path}.template.spec`
  const causes: StatusCause[] = []
  if (restartPolicy !== undefined && restartPolicy !== 'Always') {
    causes.push(unsupportedValue(`${specPath}.restartPolicy`, restartPolicy, ['Always']))
  }
  if (activeDeadlineSeconds !== undefined) {
    causes.push(forbiddenField(`${specPath}.activeDeadlineSeconds`, `activeDeadlineSeconds in ${controller} is not Supported`))
  }
  return causes
}
