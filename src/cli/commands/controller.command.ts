import { Option } from 'commander'
import { collect, type DeclareCommand, duration, durationBetween, integerBetween, positiveInteger } from '../options.ts'
import { listenOptions, roleOptions } from '../role-options.ts'

const notes = `
Decides about Stacks, Runs and Workers on any Kubernetes API server. Several
processes may run: one leads, the others take over when its Lease expires or is
released. SIGTERM releases it. A process that loses its Lease stops its work,
and contends for it again.
With --shards, which must be the same for all of them, every process works on a
share of the Stacks, and the one that leads on Runs and Workers.

With --partition they work on the Stacks and Runs of one partition behind a
gateway, and use the workers of all. Those of home size the pools; those of the
others report their queued Runs to it.`

export const declare: DeclareCommand = (program, exitWith) => {
  const command = roleOptions(program.command('controller'), { dataName: 'mirrors of git repositories, and a certificate authority' })
  listenOptions(command, { what: 'the queue, which the leader serves', port: 7470, ownCertificate: true })
    .option('--health-address <host:port>', 'address of /livez, /readyz, /metrics and /queue', '127.0.0.1:7467')
    .option('--external-metrics <host:port>', 'address of external.metrics.k8s.io, for HorizontalPodAutoscalers (default: not served)')
    .addOption(
      new Option('--external-metrics-tls <mode>', 'who writes its certificate; CertManager: not the controllers')
        .choices(['Own', 'CertManager'])
        .default('Own'),
    )
    .option('--allow-path <dir>', 'directory that Stacks may use with source.path and file:// repositories, repeatable', collect, [])
    .option('--no-default-pool', 'do not create the WorkerPool default if it does not exist')
    .addOption(
      new Option('--shards <n>', 'maximum processes that share the Stacks, up to 62 (default: the leader has all)').argParser(
        integerBetween(1, 62),
      ),
    )
    .option('--partition <name>', 'the Partition that this server is; with --workers-kubeconfig (default: it is none)')
    .option('--workers-kubeconfig <file>', 'of the gateway, where the workers of all partitions are; with --partition')
    .option('--views-per-worker <n>', 'how many tenant partitions use each worker; the same in all of them', positiveInteger, 2)
    .option('--max-running <n>', 'maximum concurrent Runs over all pools', positiveInteger)
    .option('--approval-timeout <duration>', 'how long an approval is valid', duration, '24h')
    .option(
      '--lease-duration <duration>',
      'time after which another process leads if the leader does not renew, from 3s to 10m',
      durationBetween('3s', '10m'),
      '15s',
    )
    .option(
      '--worker-lease-duration <duration>',
      'Lease of worker Pods, which stop 4s before its end if the API server does not answer (10s to 5m)',
      durationBetween('10s', '5m'),
      '60s',
    )
    .addOption(
      new Option('--crds <mode>', 'install missing CRDs; check: change nothing; upgrade: also replace older ones')
        .choices(['check', 'install', 'upgrade'])
        .default('install'),
    )
    .description('run only the controllers, with leader election')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./controller.ts')).controller(options)))
}
