import type { KubeObject } from '../../../object/index.ts'
import { formatAge, humanDuration } from '../human-duration.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { templateWarnings, workloadNameWarnings } from '../warnings/index.ts'
import { containerColumns, numberAt, selectorAt, textAt, valueAtPath } from './column-values.ts'
import { generateSelector, hasJobCondition, prepareJob, validateJob, validateJobStatus } from './job.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const batchKinds: readonly KindDeclaration[] = [
  {
    group: 'batch',
    kind: 'Job',
    plural: 'jobs',
    categories: ['all'],
    typeName: 'io.k8s.api.batch.v1.Job',
    hasStatus: true,
    hasGeneration: true,
    orphanByDefaultWarning:
      'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
    columns: [
      nameColumn,
      column('Status', 'Status of the job.', jobState),
      column(
        'Completions',
        'The number of pods which reached phase Succeeded. The value increases monotonically for a given spec. However, it may decrease in reaction to scale down of elastic indexed jobs.',
        jobCompletions,
      ),
      column('Duration', 'Time required to complete the job.', jobDuration),
      ageColumn,
      ...containerColumns('spec.template'),
      column(
        'Selector',
        'A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors',
        object => selectorAt(object, 'spec.selector'),
        1,
      ),
    ],
    selectableFields: [{ field: 'status.successful', read: object => String(numberAt(object, 'status.succeeded')) }],
    prepareForWrite: prepareJob,
    prepareForCreate: generateSelector,
    warnings: (job, oldObject) => [...workloadNameWarnings(job, oldObject), ...templateWarnings('spec.template', job, oldObject)],
    validate: validateJob,
    validateStatusUpdate: validateJobStatus,
  },
  {
    group: 'batch',
    kind: 'CronJob',
    plural: 'cronjobs',
    shortNames: ['cj'],
    categories: ['all'],
    typeName: 'io.k8s.api.batch.v1.CronJob',
    hasStatus: true,
    hasGeneration: true,
    columns: [
      nameColumn,
      column('Schedule', 'The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.', object =>
        textAt(object, 'spec.schedule', ''),
      ),
      column(
        'Timezone',
        'The time zone name for the given schedule, see https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this will default to the time zone of the kube-controller-manager process. The set of valid time zone names and the time zone offset is loaded from the system-wide time zone database by the API server during CronJob validation and the controller manager during execution. If no system-wide time zone database can be found a bundled version of the database is used instead. If the time zone name becomes invalid during the lifetime of a CronJob or due to a change in host configuration, the controller will stop creating new new Jobs and will create a system event with the reason UnknownTimeZone. More information can be found in https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones',
        object => textAt(object, 'spec.timeZone'),
      ),
      {
        ...column(
          'Suspend',
          'This flag tells the controller to suspend subsequent executions, it does not apply to already started executions.  Defaults to false.',
          object => (valueAtPath(object, 'spec.suspend') ? 'True' : 'False'),
        ),
        type: 'boolean',
      },
      {
        ...column('Active', 'A list of pointers to currently running jobs.', object => {
          const active = valueAtPath(object, 'status.active')
          return Array.isArray(active) ? active.length : 0
        }),
        type: 'integer',
      },
      column('Last Schedule', 'Information when was the last time the job was successfully scheduled.', (object, nowMs) => {
        const time = valueAtPath(object, 'status.lastScheduleTime')
        return time ? formatAge(time, nowMs) : '<none>'
      }),
      ageColumn,
      ...containerColumns('spec.jobTemplate.spec.template'),
      column(
        'Selector',
        'A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors',
        object => selectorAt(object, 'spec.jobTemplate.spec.selector'),
        1,
      ),
    ],
    validate: ({ metadata: { name } }, oldObject) => {
      // The controller appends a suffix to form the name of a Job, which must be a valid label value.
      if (oldObject || name.length <= maxCronJobName) return []
      const reason = `must be no more than ${maxCronJobName} characters`
      return [{ reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(name)}: ${reason}`, field: 'metadata.name' }]
    },
    warnings: (object, oldObject) => {
      const hasZone = textAt(object, 'spec.schedule', '').includes('TZ')
      const zoneWarning =
        'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details'
      const podTemplateWarnings = templateWarnings('spec.jobTemplate.spec.template', object, oldObject)
      return [...workloadNameWarnings(object, oldObject), ...podTemplateWarnings, ...(oldObject && hasZone ? [zoneWarning] : [])]
    },
  },
]

const maxCronJobName = 52

function jobState(job: KubeObject): string {
  for (const type of ['Complete', 'Failed']) if (hasJobCondition(job, type)) return type
  if (job.metadata.deletionTimestamp) return 'Terminating'
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(type => hasJobCondition(job, type)) ?? 'Running'
}

function jobCompletions(job: KubeObject): string {
  const succeeded = numberAt(job, 'status.succeeded')
  const desired = valueAtPath(job, 'spec.completions')
  if (typeof desired === 'number') return `${succeeded}/${desired}`
  const parallelism = numberAt(job, 'spec.parallelism')
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function jobDuration(job: KubeObject, nowMs: number): string {
  const start = Date.parse(textAt(job, 'status.startTime', ''))
  if (Number.isNaN(start)) return ''
  const end = Date.parse(textAt(job, 'status.completionTime', ''))
  return humanDuration((Number.isNaN(end) ? nowMs : end) - start)
}
