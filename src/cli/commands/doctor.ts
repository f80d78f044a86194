import { type AccessOptions, withClient } from '../access.ts'
import { outPaint, print } from '../console.ts'
import { type Finding, findingLines } from '../doctor/finding.ts'
import { machineFindings } from '../doctor/machine-findings.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'

/**
 * `oarlock doctor`: checks what this machine has of what Oarlock can use; with `--kubeconfig` or `--context`, what the cluster has of what Oarlock
 * needs. The exit code is 1 only if there is a problem.
 */
export async function doctor(options: AccessOptions & { data?: string; output?: string }): Promise<number> {
  const isCluster = options.kubeconfig !== undefined || options.context !== undefined
  const findings = await (isCluster ? clusterReport(options) : machineFindings(options))
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
