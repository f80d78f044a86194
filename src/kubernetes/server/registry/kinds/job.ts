import {
  equalJson,
  invalidValue,
  type KubeObject,
  type LabelSelectorObject,
  requiredValue,
  type StatusCause,
} from '../../../object/index.ts'
import {
  type Fields,
  firstCommonIndex,
  goMap,
  goSelector,
  invalidWithoutValue,
  negativeErrors,
  numberOf,
  readIndexes,
  selectorChangeErrors,
  selects,
  templateLabels,
} from '../type-rules/index.ts'
import { valueAtPath } from './column-values.ts'

const controllerUid = 'batch.kubernetes.io/controller-uid'
const jobName = 'batch.kubernetes.io/job-name'

/** The labels that select the Pods of a Job, with the prefix and without it, as they were at first. */
function ownLabels({ uid, name }: KubeObject['metadata']): Record<string, string> {
  return { [controllerUid]: uid, [jobName]: name, 'controller-uid': uid, 'job-name': name }
}

/** A Job without labels gets those of its template. */
export function prepareJob(job: KubeObject, oldJob: KubeObject | undefined): void {
  const labels = templateLabels((job.spec ?? {}) as Fields)
  if (!oldJob && labels && Object.keys(job.metadata.labels ?? {}).length === 0) job.metadata.labels = labels
}

/** Gives a Job without a manual selector a selector that no other Job has, and its template the matching labels. */
export function generateSelector(job: KubeObject): void {
  const spec = (job.spec ?? {}) as Fields
  if (spec.manualSelector === true) return
  const labels = templateLabels(spec)
  const template = (spec.template ?? {}) as { metadata?: Fields }
  const selector = (spec.selector ?? {}) as LabelSelectorObject
  // Labels that the user set are not changed here; validation rejects wrong ones.
  const all = { ...ownLabels(job.metadata), ...labels }
  job.spec = {
    ...spec,
    selector: { ...selector, matchLabels: { [controllerUid]: job.metadata.uid, ...selector.matchLabels } },
    template: { ...template, metadata: { ...template.metadata, labels: all } },
  }
  if (!job.metadata.labels || job.metadata.labels === labels) job.metadata.labels = all
}

/** Validates the relations between the fields of a Job, and between a Job and its previous version. */
export function validateJob(job: KubeObject, oldJob: KubeObject | undefined): StatusCause[] {
  const spec = (job.spec ?? {}) as Fields
  const causes = selectorErrors(job, spec)
  if (oldJob) return [...causes, ...changeErrors(spec, (oldJob.spec ?? {}) as Fields)]
  const completions = numberOf(spec.completions)
  const last = `${job.metadata.name}-${completions - 1}`
  if (spec.completionMode === 'Indexed' && completions > 0 && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(last)) {
    causes.push(invalidValue('metadata.name', job.metadata.name, `will not able to create pod with invalid DNS label: ${last}`))
  }
  return causes
}

function selectorErrors({ metadata }: KubeObject, spec: Fields): StatusCause[] {
  const selector = (spec.selector ?? undefined) as LabelSelectorObject | undefined
  if (!selector) return [requiredValue('spec.selector'), mismatch(spec)]
  const causes: StatusCause[] = []
  if (spec.manualSelector !== true) {
    const labels = templateLabels(spec) ?? {}
    for (const [key, value] of Object.entries(ownLabels(metadata))) {
      if (labels[key] === value) continue
      const path = `spec.template.metadata.labels[${key}]`
      if (labels[key] === undefined) causes.push(requiredValue(path, `must be '${value}'`))
      else causes.push(invalidValue(path, goMap(labels), `must be '${value}'`))
    }
    if (selects(selector, ownLabels(metadata)) === false) {
      causes.push(invalidValue('spec.selector', goSelector(selector), '`selector` not auto-generated'))
    }
  }
  if (selects(selector, templateLabels(spec)) === false) causes.push(mismatch(spec))
  return causes
}

function mismatch(spec: Fields): StatusCause {
  return invalidValue('spec.template.metadata.labels', goMap(templateLabels(spec)), '`selector` does not match template `labels`')
}

const immutableFields = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy']

function changeErrors(spec: Fields, oldSpec: Fields): StatusCause[] {
  const causes = selectorChangeErrors(spec, oldSpec)
  const rejectChange = (field: string, value: unknown) => causes.push(invalidValue(`spec.${field}`, value ?? null, 'field is immutable'))
  if (!equalJson(spec.completions, oldSpec.completions)) {
    if (spec.completionMode !== 'Indexed') rejectChange('completions', spec.completions)
    else if (spec.completions !== undefined && spec.completions !== spec.parallelism) {
      causes.push(invalidValue('spec.completions', spec.completions, 'can only be modified in tandem with spec.parallelism'))
    }
  }
  for (const field of immutableFields) if (!equalJson(spec[field], oldSpec[field])) rejectChange(field, spec[field])
  return [...causes, ...templateChangeErrors(spec, oldSpec)]
}

type Template = { metadata?: Fields; spec?: Fields }

/** The scheduling fields and resources of a suspended Job may change before it starts; otherwise its template is immutable. */
function templateChangeErrors(spec: Fields, oldSpec: Fields): StatusCause[] {
  const [template, oldTemplate] = [(spec.template ?? {}) as Template, (oldSpec.template ?? {}) as Template]
  if (oldSpec.suspend !== true) {
    return equalJson(template, oldTemplate) ? [] : [invalidValue('spec.template', template, 'field is immutable')]
  }
  const { spec: podSpec = {} } = template
  const allowed: Fields = { ...oldTemplate.spec }
  for (const field of ['nodeSelector', 'tolerations', 'schedulingGates']) copyField(allowed, podSpec, field)
  const affinity = { ...(allowed.affinity as Fields | undefined) }
  copyField(affinity, (podSpec.affinity ?? {}) as Fields, 'nodeAffinity')
  if (Object.keys(affinity).length > 0 || podSpec.affinity !== undefined) allowed.affinity = affinity
  else delete allowed.affinity
  for (const field of ['containers', 'initContainers']) {
    const [oldContainers, newContainers] = [allowed[field], podSpec[field]] as [Fields[] | undefined, Fields[] | undefined]
    if (!oldContainers || newContainers?.length !== oldContainers.length) continue
    allowed[field] = oldContainers.map((container, index) => {
      const newContainer = newContainers[index]!
      if (newContainer.name !== container.name) return container
      const copy = { ...container }
      copyField(copy, newContainer, 'resources')
      return copy
    })
  }
  return equalJson(podSpec, allowed) ? [] : [invalidValue('spec.template.spec', podSpec, 'field is immutable')]
}

function copyField(to: Fields, from: Fields, field: string): void {
  if (from[field] === undefined) delete to[field]
  else to[field] = from[field]
}

type Condition = { type?: string; status?: string }

export function hasJobCondition(job: KubeObject, type: string): boolean {
  const conditions = valueAtPath(job, 'status.conditions')
  return Array.isArray(conditions) && conditions.some((condition: Condition) => condition.type === type && condition.status === 'True')
}

/** Validates the status of a Job, alone and against its previous version. */
export function validateJobStatus(job: KubeObject, oldJob: KubeObject | undefined): StatusCause[] {
  const status = (job.status ?? {}) as Fields
  const spec = (job.spec ?? {}) as Fields
  return [
    ...negativeErrors(status, 'status', ['active', 'succeeded', 'failed', 'ready', 'terminating']),
    ...uncountedErrors(status),
    ...conditionErrors(job, spec),
    ...finishedErrors(job, spec, status),
    ...timeErrors(job, status),
    ...indexErrors(spec, status),
    ...(oldJob ? statusChangeErrors(job, status, oldJob) : []),
  ]
}

function uncountedErrors({ uncountedTerminatedPods: uncounted }: Fields): StatusCause[] {
  const { succeeded = [], failed = [] } = (uncounted ?? {}) as { succeeded?: string[]; failed?: string[] }
  const seen = new Set<string>()
  const uidErrors = (uids: string[], field: string) =>
    uids.flatMap((uid, index): StatusCause[] => {
      const path = `status.uncountedTerminatedPods.${field}[${index}]`
      if (uid === '') return [invalidValue(path, uid, 'must not be empty')]
      if (seen.has(uid)) return [{ reason: 'FieldValueDuplicate', message: `Duplicate value: ${JSON.stringify(uid)}`, field: path }]
      seen.add(uid)
      return []
    })
  return [...uidErrors(succeeded, 'succeeded'), ...uidErrors(failed, 'failed')]
}

function conditionErrors(job: KubeObject, spec: Fields): StatusCause[] {
  const hasCondition = (type: string) => hasJobCondition(job, type)
  const rules: [isBroken: boolean, reason: string][] = [
    [hasCondition('Complete') && hasCondition('Failed'), 'cannot set Complete=True and Failed=true conditions'],
    [hasCondition('Complete') && hasCondition('FailureTarget'), 'cannot set Complete=True and FailureTarget=true conditions'],
    [hasCondition('Failed') && !hasCondition('FailureTarget'), 'cannot set Failed=True condition without the FailureTarget=true condition'],
    [
      hasCondition('Complete') && !hasCondition('SuccessCriteriaMet'),
      'cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ],
    [hasCondition('SuccessCriteriaMet') && hasCondition('Failed'), 'cannot set SuccessCriteriaMet=True and Failed=true conditions'],
    [
      hasCondition('SuccessCriteriaMet') && hasCondition('FailureTarget'),
      'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions',
    ],
    [
      spec.successPolicy !== undefined && hasCondition('Complete') && !hasCondition('SuccessCriteriaMet'),
      'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True',
    ],
  ]
  return rules.filter(([isBroken]) => isBroken).map(([, reason]) => invalidWithoutValue('status.conditions', reason))
}

function finishedErrors(
  job: KubeObject,
  spec: Fields,
  { active, terminating, ready, startTime, uncountedTerminatedPods }: Fields,
): StatusCause[] {
  const causes: StatusCause[] = []
  if (numberOf(ready) > numberOf(active)) causes.push(invalidValue('status.ready', ready, 'cannot set more ready pods than active'))
  if (!hasJobCondition(job, 'Complete') && !hasJobCondition(job, 'Failed')) return causes
  if (numberOf(active) > 0) causes.push(invalidValue('status.active', active, 'active>0 is invalid for finished job'))
  if (numberOf(terminating) > 0) causes.push(invalidValue('status.terminating', terminating, 'terminating>0 is invalid for finished job'))
  const isNeverStarted = spec.suspend === true && spec.completions === 0
  if (startTime === undefined && !isNeverStarted) causes.push(requiredValue('status.startTime', 'startTime is required for finished job'))
  const { succeeded = [], failed = [] } = (uncountedTerminatedPods ?? {}) as { succeeded?: unknown[]; failed?: unknown[] }
  if (succeeded.length + failed.length > 0) {
    causes.push(invalidValue('status.uncountedTerminatedPods', uncountedTerminatedPods, 'must be empty for finished job'))
  }
  return causes
}

function timeErrors(job: KubeObject, { startTime, completionTime }: Fields): StatusCause[] {
  const isComplete = hasJobCondition(job, 'Complete')
  const path = 'status.completionTime'
  if (completionTime === undefined) return isComplete ? [requiredValue(path, 'completionTime is required for Complete jobs')] : []
  const causes: StatusCause[] = []
  if (!isComplete) {
    causes.push(invalidValue(path, completionTime, 'cannot set completionTime when there is no Complete=True condition'))
  }
  if (Date.parse(String(completionTime)) < Date.parse(String(startTime))) {
    causes.push(invalidValue(path, completionTime, 'must be equal to or after `startTime`'))
  }
  return causes
}

function indexErrors(spec: Fields, status: Fields): StatusCause[] {
  const { completedIndexes = '', failedIndexes } = status as { completedIndexes?: string; failedIndexes?: string }
  const causes: StatusCause[] = []
  const completions = typeof spec.completions === 'number' ? spec.completions : undefined
  const validateIndexes = (field: string, value: string) => {
    const parsed = readIndexes(value, completions ?? 0)
    if ('reason' in parsed) causes.push(invalidValue(`status.${field}`, value, `error parsing ${field}: ${parsed.reason}`))
  }
  if (completions !== undefined) validateIndexes('completedIndexes', completedIndexes)
  if (completions !== undefined && spec.backoffLimitPerIndex !== undefined && failedIndexes !== undefined)
    validateIndexes('failedIndexes', failedIndexes)
  if (completedIndexes !== '' && spec.completionMode !== 'Indexed') {
    const reason = 'cannot set non-empty completedIndexes when non-indexed completion mode'
    causes.push(invalidValue('status.completedIndexes', completedIndexes, reason))
  }
  if (failedIndexes === undefined) return causes
  if (spec.backoffLimitPerIndex === undefined) {
    causes.push(invalidValue('status.failedIndexes', failedIndexes, 'cannot set non-null failedIndexes when backoffLimitPerIndex is null'))
  }
  const commonIndex = completions === undefined ? undefined : firstCommonIndex(completedIndexes, failedIndexes, completions)
  if (commonIndex !== undefined) {
    causes.push(invalidValue('status.failedIndexes', failedIndexes, `failedIndexes and completedIndexes overlap at index: ${commonIndex}`))
  }
  return causes
}

function statusChangeErrors(job: KubeObject, status: Fields, oldJob: KubeObject): StatusCause[] {
  const oldStatus = (oldJob.status ?? {}) as Fields
  const spec = (job.spec ?? {}) as Fields
  const causes: StatusCause[] = []
  for (const type of ['Failed', 'Complete', 'FailureTarget']) {
    if (hasJobCondition(oldJob, type) && !hasJobCondition(job, type)) {
      causes.push(invalidWithoutValue('status.conditions', `cannot disable the terminal ${type}=True condition`))
    }
  }
  for (const field of ['failed', 'succeeded']) {
    // A Job whose completed indexes are reset may have fewer.
    const canDecrease = field === 'succeeded' && spec.completionMode === 'Indexed' && spec.completions === spec.parallelism
    if (!canDecrease && numberOf(status[field]) < numberOf(oldStatus[field])) {
      causes.push(invalidValue(`status.${field}`, numberOf(status[field]), `cannot decrease the ${field} counter`))
    }
  }
  const { completionTime, startTime } = status
  if (completionTime !== undefined && oldStatus.completionTime !== undefined && completionTime !== oldStatus.completionTime) {
    causes.push(invalidValue('status.completionTime', completionTime, 'field is immutable'))
  }
  if (oldStatus.startTime !== undefined && startTime !== oldStatus.startTime && spec.suspend !== true) {
    causes.push(invalidValue('status.startTime', startTime ?? null, 'field is immutable for unsuspended job once set'))
  }
  if (hasJobCondition(oldJob, 'SuccessCriteriaMet') && !hasJobCondition(job, 'SuccessCriteriaMet')) {
    causes.push(invalidWithoutValue('status.conditions', 'cannot disable the SuccessCriteriaMet=True condition'))
  }
  return causes
}
