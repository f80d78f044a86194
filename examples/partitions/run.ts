/**
 * `npm run partitions -- --tenants 2 --resources 2`: starts partitions, a gateway, the controllers and stores of each tenant partition, workers and a
 * Prometheus configuration for all of them; creates a Tenant in each tenant partition, and runs a sample fleet through the gateway.
 */
import { rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { applyFleet, fleetProgress, isFleetReady } from './fleet.ts'
import { Installation } from './installation.ts'
import { writePrometheusConfiguration } from './prometheus.ts'
import { startRoles } from './roles.ts'
import { Supervisor } from './supervisor.ts'

const help = `npm run partitions -- [options]
  --tenants N     tenant partitions, each with a Tenant and a sample fleet; default 2
  --resources N   resource partitions, which have the workers; default 2
  --workers N     real workers in each resource partition; default 2
  --hollow N      hollow workers in all resource partitions; default none
  --port N        port of the gateway on 127.0.0.1; default 7471
  --data DIR      data directories and logs; default .oarlock-partitions
  --keep          continue with the data of an earlier run
  --once          stop when every Stack of the sample is Ready
  --no-restart    do not start a process again that fails; default: after 1 s,
                  then after delays that double up to 30 s
`

const options = {
  tenants: { type: 'string', default: '2' },
  resources: { type: 'string', default: '2' },
  workers: { type: 'string', default: '2' },
  hollow: { type: 'string', default: '0' },
  port: { type: 'string', default: '7471' },
  data: { type: 'string', default: '.oarlock-partitions' },
  keep: { type: 'boolean', default: false },
  once: { type: 'boolean', default: false },
  'no-restart': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

function fail(message: string): never {
  console.error(`${message}\n\n${help}`)
  process.exit(2)
}

function readValues() {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return fail((error as Error).message)
  }
}

const values = readValues()
const integer = (name: 'tenants' | 'resources' | 'workers' | 'hollow' | 'port', min: number, max: number) => {
  const value = Number(values[name])
  return Number.isInteger(value) && value >= min && value <= max
    ? value
    : fail(`--${name} must be an integer from ${min} to ${max}, got ${values[name]}`)
}
if (values.help) {
  console.log(help)
  process.exit(0)
}
const [tenants, resources] = [integer('tenants', 1, 30), integer('resources', 1, 30)]
const [workers, hollow, gatewayPort] = [integer('workers', 0, 100), integer('hollow', 0, 100_000), integer('port', 1, 65_535)]
const directory = resolve(values.data)
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`)
const tenantPartitions = names('t', tenants)
const resourcePartitions = names('r', resources)

const startMs = performance.now()
const seconds = () => `${((performance.now() - startMs) / 1_000).toFixed(1)} s`.padStart(7)
const report = (text: string) => console.log(`${seconds()}  ${text}`)

if (!values.keep) rmSync(directory, { recursive: true, force: true })
/** As a user types it where the command was started. */
const shown = (path: string) => {
  const short = relative(process.env.INIT_CWD ?? process.cwd(), path)
  return short.startsWith('..') || short.length > path.length ? path : short
}
let installation: Installation | undefined
let supervisor: Supervisor | undefined
const stopping = new AbortController()
const stop = async (exitCode: number) => {
  if (stopping.signal.aborted) process.exit(130)
  stopping.abort()
  console.log('stopping (press Ctrl-C again to force)')
  supervisor?.stop()
  await installation?.stop()
  process.exit(exitCode)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0))
// Before the fleet is Ready it means nothing, and must not end this process.
process.on('SIGUSR2', () => supervisor?.startEnded())

try {
  report(`starting home, ${tenants} tenant and ${resources} resource partitions, and the gateway`)
  installation = await Installation.start({ directory, tenantPartitions, resourcePartitions, gatewayPort })
  const { kubeconfig } = installation
  report('the gateway serves')
  const client = await createClient({ kubeconfig })
  report('starting controllers, stores, the join service and workers')
  await startRoles(installation, client, { tenantPartitions, resourcePartitions, workers, hollow })
  const prometheus = await writePrometheusConfiguration(installation, client, { tenantPartitions, resourcePartitions })
  report(`prometheus --config.file ${shown(prometheus)}`)
  await applyFleet(client, tenantPartitions, resourcePartitions)
  report('the sample fleet is applied; Ready Stacks by namespace:')
  let last = ''
  while (!stopping.signal.aborted) {
    const stacks = await fleetProgress(client)
    const text = stacks.map(({ namespace, ready, total }) => `${namespace} ${ready}/${total}`).join(', ')
    if (text !== last) report(text)
    last = text
    if (isFleetReady(stacks)) break
    await new Promise(done => setTimeout(done, 250))
  }
  const startEnded = `kill -USR2 ${process.pid}`
  if (!values['no-restart']) supervisor = new Supervisor(installation.roles, report, startEnded)
  report('every Stack is Ready. Try in another terminal:')
  const lines = [
    `export KUBECONFIG=${shown(kubeconfig)}`,
    'kubectl get partitions',
    'kubectl get stacks,runs -A',
    'kubectl get workers -L oarlock.dev/partition',
    `kill ${installation.role('home').pid}   # home ends; what exists keeps working`,
    ...(supervisor ? [`${startEnded}   # starts it again`] : []),
    `ls ${shown(join(directory, 'logs'))}   # a log of each process`,
  ]
  for (const line of lines) console.log(`         ${line}`)
  console.log('Ctrl-C stops everything.')
  await client.close()
  if (values.once) await stop(0)
} catch (error) {
  console.error((error as Error).message)
  await stop(1)
}
