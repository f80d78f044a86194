import { type AccessOptions, currentEnvironment, findKubeconfig, withClient } from '../access.ts'
import { type Finding, findingLines } from '../doctor/finding.ts'
import { machineFindings } from '../doctor/machine-findings.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { outPaint, print } from '../terminal.ts'

/**
 * `oarlock doctor`: checks what this machine has of what Oarlock can use; with `--kubeconfig` or `--context`, what the cluster has of what Oarlock
 * needs. In a Pod without a kubeconfig it checks both, the cluster with the service account of the Pod. The exit code is 1 only if there is a problem.
 */
export async function doctor(options: AccessOptions & { data?: string; output?: string }): Promise<number> {
  const checked = checkedBy(options, (await import('../../kubernetes/client/index.ts')).isInPod())
  const findings = [
    ...(checked.includes('Machine') ? await machineFindings(options) : []),
    ...(checked.includes('Cluster') ? await clusterReport(options) : []),
  ]
  if (options.output === 'json' || options.output === 'yaml') print(await serialize(findings, options.output))
  else for (const line of findings.flatMap(finding => findingLines(finding, outPaint(), process.stdout.columns))) print(line)
  return findings.some(({ state }) => state === 'problem') ? exitCodes.failed : exitCodes.done
}

async function clusterReport(options: AccessOptions): Promise<Finding[]> {
  const [{ readClusterFacts }, { clusterFindings }] = await Promise.all([
    import('../doctor/cluster-facts.ts'),
    import('../doctor/cluster-findings.ts'),
  ])
  return await withClient(options, async client => clusterFindings(await readClusterFacts(client)))
}

/** What is checked. Pure, except for the search for a kubeconfig in `environment`. */
export function checkedBy(
  options: AccessOptions,
  isInPod: boolean,
  environment = currentEnvironment(),
): readonly ('Machine' | 'Cluster')[] {
  if (options.kubeconfig !== undefined || options.context !== undefined) return ['Cluster']
  const hasKubeconfig = environment.env.KUBECONFIG || findKubeconfig(undefined, environment) !== undefined
  return isInPod && !hasKubeconfig ? ['Machine', 'Cluster'] : ['Machine']
}
