import { deepEqual, equal, match } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cgroupHierarchies } from './cluster/cgroups.ts'
import { Cluster } from './cluster/cluster.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'

const skip = clusterMissing() ?? imageMissing() ?? false

const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}
const pod = (name: string, nodeName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop' },
  spec: {
    nodeName,
    restartPolicy: 'Never',
    // With the credentials of a service account doctor would check the cluster too, which has no Oarlock here.
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        ...{
          name: 'oarlock',
          image: oarlockImage,
          imagePullPolicy: 'Never',
          args: ['doctor', '--data', '/tmp/data', '-o', 'json'],
          securityContext: restricted,
        },
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'tmp', emptyDir: {} }],
  },
})
const namespace = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
}

test('the image runs on two nodes of a real cluster, non-root with a read-only root, and a stopped cluster leaves nothing behind', {
  skip,
  timeout: 900_000,
}, async () => {
  const cluster = await Cluster.start({ nodes: 2, images: [buildOarlockImage()] })
  const { directory, network, kubeconfig } = cluster
  const kubectl = (args: string[], input?: object) =>
    execFileSync('kubectl', [`--kubeconfig=${kubeconfig}`, ...args], { encoding: 'utf8', ...(input && { input: JSON.stringify(input) }) })
  try {
    kubectl(['create', '-f', '-'], namespace)
    for (;;) {
      // The controller manager creates it.
      if (kubectl(['get', 'serviceaccounts', '-n', 'shop', '-o', 'name']).includes('/default')) break
      await sleep(100)
    }
    for (const node of ['n1', 'n2']) kubectl(['create', '-f', '-'], pod(`doctor-${node}`, node))
    for (const node of ['n1', 'n2']) {
      kubectl([
        'wait',
        '--for=jsonpath={.status.containerStatuses[0].state.terminated}',
        '--timeout=120s',
        '-n',
        'shop',
        `pod/doctor-${node}`,
      ])
      const { status } = JSON.parse(kubectl(['get', 'pod', `doctor-${node}`, '-n', 'shop', '-o', 'json']))
      const log = kubectl(['logs', '-n', 'shop', `doctor-${node}`])
      equal(status.containerStatuses[0].state.terminated.exitCode, 0, log)
      match(log, /"engine opentofu",\s+"state": "ok"/)
    }
  } finally {
    await cluster.close()
  }
  const names = (directories: string[]) => directories.flatMap(each => globSync(`oarlock-${network.id}-*`, { cwd: each }))
  deepEqual(
    {
      directory: existsSync(directory),
      links: run('ip', '-o', 'link')
        .split('\n')
        .filter(line => line.includes(`oar-${network.id}`)),
      mounts: readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .filter(line => line.includes(directory)),
      cgroups: names(cgroupHierarchies()),
      processes: globSync('[0-9]*', { cwd: '/proc' }).filter(pid => commandLine(pid).includes(directory)),
    },
    { directory: false, links: [], mounts: [], cgroups: [], processes: [] },
  )
})

const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { encoding: 'utf8', env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })

function commandLine(pid: string): string {
  try {
    return readFileSync(join('/proc', pid, 'cmdline'), 'utf8')
  } catch {
    // It has ended meanwhile.
    return ''
  }
}
