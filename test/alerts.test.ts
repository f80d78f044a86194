/** The alert rules, evaluated by Prometheus' own code on series of their metrics: when each fires, and when it does not. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import { buildCache } from './support/run-program.ts'

const promtool = join(process.env.OARLOCK_PEER_DIR ?? join(buildCache, 'peer'), 'promtool')
const skip = existsSync(promtool) ? false : 'promtool not found: run scripts/build-peers.sh (needs Go)'
const rulesFile = resolve('monitoring/alerts.yaml')

type Rule = { alert: string; labels: { severity: string } }
const { groups } = parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap(group => group.rules)

/** `silentAt`: times at which the alert does not fire. `firesAt`: a time, the labels and the summary. Series begin at 0, with a sample each minute. */
type Row = {
  readonly alert: string
  readonly series: Readonly<Record<string, string>>
  readonly silentAt: readonly string[]
  readonly firesAt?: readonly [at: string, labels: Readonly<Record<string, string>>, summary: string]
}

const condition = (type: string, status: string, reason: string) =>
  `oarlock_stack_conditions{namespace="shop",condition="${type}",status="${status}",reason="${reason}"}`
const oldest = (type: string, status: string, reason: string) =>
  condition(type, status, reason).replace('conditions{', 'condition_oldest_timestamp_seconds{')
const shop = { namespace: 'shop' }

const rows: readonly Row[] = [
  {
    alert: 'OarlockStackStalled',
    series: { [condition('Stalled', 'True', 'InvalidSpec')]: '2x60' },
    silentAt: ['14m'],
    firesAt: ['16m', { ...shop, reason: 'InvalidSpec' }, '2 Stacks in namespace shop Stalled with reason InvalidSpec'],
  },
  { alert: 'OarlockStackStalled', series: { [condition('Stalled', 'True', 'StateMissing')]: '1x60' }, silentAt: ['30m'] },
  {
    alert: 'OarlockStateLost',
    series: { [condition('Stalled', 'True', 'StateMissing')]: '0x5 1x60' },
    silentAt: ['4m'],
    firesAt: ['7m', { ...shop, reason: 'StateMissing' }, '1 Stack in namespace shop not applied, with reason StateMissing'],
  },
  { alert: 'OarlockStateLost', series: { [condition('Stalled', 'True', 'InvalidSpec')]: '1x60' }, silentAt: ['30m'] },
  {
    alert: 'OarlockStackNotReady',
    series: { [oldest('Ready', 'False', 'ApplyFailed')]: '0x600' },
    silentAt: ['6h'],
    firesAt: [
      '6h20m',
      { ...shop, reason: 'ApplyFailed' },
      'A Stack in namespace shop has not been Ready for 6h 20m 0s, with reason ApplyFailed',
    ],
  },
  { alert: 'OarlockStackNotReady', series: { [oldest('Ready', 'False', 'AwaitingApproval')]: '0x600' }, silentAt: ['8h'] },
  {
    alert: 'OarlockPersistentFailure',
    series: { [condition('Ready', 'False', 'PersistentFailure')]: '3x60' },
    silentAt: ['4m'],
    firesAt: ['6m', shop, '3 Stacks in namespace shop with a persistent failure that is retried'],
  },
  {
    alert: 'OarlockApprovalPending',
    series: { [oldest('AwaitingApproval', 'True', 'Pending')]: '0x1600' },
    silentAt: ['24h'],
    firesAt: ['24h10m', shop, 'The oldest approval in namespace shop has been pending for 1d 0h 10m 0s'],
  },
  {
    alert: 'OarlockDrift',
    series: { [condition('Drifted', 'True', 'DriftFound')]: '1x120' },
    silentAt: ['59m'],
    firesAt: ['61m', shop, '1 Stack in namespace shop with drift'],
  },
  { alert: 'OarlockDrift', series: { [condition('Drifted', 'False', 'NoDrift')]: '1x120' }, silentAt: ['90m'] },
  {
    alert: 'OarlockNoSuccessfulApply',
    series: {
      'oarlock_stack_last_apply_timestamp_seconds{namespace="shop"}': '0x1600',
      [condition('Ready', 'False', 'ApplyFailed')]: '1x1600',
    },
    silentAt: ['24h'],
    firesAt: ['24h20m', shop, 'Namespace shop has Stacks that are not Ready, and no apply has succeeded for 1d 0h 20m 0s'],
  },
  {
    alert: 'OarlockNoSuccessfulApply',
    series: {
      'oarlock_stack_last_apply_timestamp_seconds{namespace="shop"}': '0x1600',
      [condition('Ready', 'False', 'AwaitingApproval')]: '1x1600',
    },
    silentAt: ['25h'],
  },
  {
    alert: 'OarlockStateWriteRejected',
    series: { 'oarlock_state_writes_rejected_total{reason="StaleEpoch"}': '0x10 1x120' },
    silentAt: ['9m', '80m'],
    firesAt: ['12m', { reason: 'StaleEpoch' }, 'Writes of states were rejected and stored as orphaned versions, with reason StaleEpoch'],
  },
  {
    alert: 'OarlockStateUnsaved',
    series: { 'oarlock_unsaved_states{host="vm1",instance="a"}': '2x30', 'oarlock_unsaved_states{host="vm1",instance="b"}': '2x30' },
    silentAt: ['4m'],
    firesAt: ['6m', { host: 'vm1' }, '2 states of Runs stored on host vm1 only, and deleted there after a day'],
  },
  { alert: 'OarlockStateUnsaved', series: { 'oarlock_unsaved_states{host="vm1"}': '0x30' }, silentAt: ['10m'] },
  {
    alert: 'OarlockRunsWaiting',
    series: { 'oarlock_runs_queued{pool="edge"}': '4x60', 'oarlock_worker_slots{pool="edge",state="free"}': '0x60' },
    silentAt: ['29m'],
    firesAt: ['31m', { pool: 'edge' }, '4 Runs queued in pool edge, which has no free slots'],
  },
  {
    alert: 'OarlockRunsWaiting',
    series: { 'oarlock_runs_queued{pool="edge"}': '4x60', 'oarlock_worker_slots{pool="edge",state="free"}': '1x60' },
    silentAt: ['45m'],
  },
  {
    alert: 'OarlockCacheFailing',
    series: { 'controller_cache_failing_seconds{resource="stacks",cluster=""}': '0x10 60+60x30' },
    silentAt: ['15m', '20m'],
    firesAt: [
      '22m',
      { resource: 'stacks' },
      'A controller has not been able to list and watch stacks for 12m 0s and acts on outdated objects',
    ],
  },
  {
    alert: 'OarlockCacheFailing',
    series: { 'controller_cache_failing_seconds{resource="stacks",cluster=""}': '120x60' },
    silentAt: ['30m'],
  },
]

function testOf({ alert, series, silentAt, firesAt }: Row): object {
  const severity = rules.find(rule => rule.alert === alert)?.labels.severity
  const silent = silentAt.map(at => ({ eval_time: at, alertname: alert, exp_alerts: [] }))
  const [at, labels, summary] = firesAt ?? []
  const expected = [{ exp_labels: { severity, ...labels }, exp_annotations: { summary } }]
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [...silent, ...(firesAt ? [{ eval_time: at, alertname: alert, exp_alerts: expected }] : [])],
  }
}

/** The exit code of promtool, and what it printed. */
async function run(...args: string[]): Promise<{ code: number; text: string }> {
  const done = await promisify(execFile)(promtool, args).catch((error: { code: number; stdout: string; stderr: string }) => error)
  return { code: 'code' in done ? done.code : 0, text: `${done.stdout}${done.stderr}` }
}

async function evaluate(tests: readonly object[]): Promise<{ code: number; text: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-alerts-'))
  const file = join(directory, 'alerts.test.yaml')
  writeFileSync(file, stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }))
  try {
    return await run('test', 'rules', file)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test('each alert has series on which it fires, and times at which it does not', () => {
  deepEqual(
    rules.map(({ alert }) => alert).filter(alert => !rows.some(row => row.alert === alert && row.firesAt && row.silentAt.length > 0)),
    [],
  )
})

test('Prometheus accepts the rules, and each alert fires when it should and with its summary', { skip }, async () => {
  const checked = await run('check', 'rules', '--lint-fatal', rulesFile)
  equal(checked.code, 0, checked.text)
  const { code, text } = await evaluate(rows.map(testOf))
  equal(code, 0, text)
})

test('the evaluation reports an alert that fires too early', { skip }, async () => {
  const [row] = rows as [Row]
  const { code, text } = await evaluate([testOf({ ...row, silentAt: ['16m'] })])
  equal(code, 1, text)
  ok(/alertname: OarlockStackStalled, time: 16m/.test(text), text)
})
