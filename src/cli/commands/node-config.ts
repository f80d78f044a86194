import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { nameErrors, parseDuration } from '../../kubernetes/object/index.ts'
import { issueKubeletCertificates, writeSecretFile } from '../../kubernetes/server/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { print } from '../terminal.ts'

export type NodeConfigOptions = { data?: string; server?: string; address: string[]; to?: string; ttl: string }

/**
 * `oarlock node-config`: writes what a kubelet needs to join the server of a data directory. It works on the files of the directory, also
 * while the server runs, which reads its own part when it first connects to a kubelet.
 */
export async function nodeConfig(node: string, { data, server, address, to = node, ttl }: NodeConfigOptions): Promise<void> {
  const [reason] = nameErrors(node, 'dns1123Subdomain')
  if (reason) throw usageError(`invalid name of a Node ${JSON.stringify(node)}`, reason)
  const dataDir = dataDirectory(data)
  const url = server ?? serverOf(join(dataDir, 'kubeconfig'))
  if (!/^https:\/\/[^/\s]+$/.test(url)) throw usageError(`invalid --server ${JSON.stringify(url)}`, 'it must be like https://10.0.0.1:7466')
  const pkiDir = join(dataDir, 'pki')
  const directory = resolve(to)
  try {
    const issued = await issueKubeletCertificates(pkiDir, { node, addresses: address, ttlMs: parseDuration(ttl) }, Date.now())
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const file = (name: string) => join(directory, name)
    const ca = readFileSync(join(pkiDir, 'ca.crt'), 'utf8')
    writeSecretFile(file('kubelet.crt'), issued.serving.certificate)
    writeSecretFile(file('kubelet.key'), issued.serving.key)
    writeSecretFile(file('client-ca.crt'), issued.clientCa)
    writeSecretFile(file('kubeconfig'), kubeconfigOf({ node, url, ca, ...issued.client }))
    writeSecretFile(file('kubelet-config.yaml'), configurationOf(file))
  } catch (error) {
    throw dataError(error)
  }
  print(`the kubelet of node ${node} joins ${url} with the files in ${directory}:`)
  print(`  kubelet --hostname-override=${node} --kubeconfig=${join(directory, 'kubeconfig')} \\`)
  print(`    --config=${join(directory, 'kubelet-config.yaml')}`)
  print('kubelet-config.yaml has only what concerns the server: add the container runtime and the rest of your configuration')
}

function serverOf(kubeconfigPath: string): string {
  if (!existsSync(kubeconfigPath)) {
    throw new CliError(`${kubeconfigPath} does not exist: no server has been started with this data directory`, {
      exitCode: exitCodes.dataDirectory,
      hint: 'start it once with "oarlock up" or "oarlock serve"',
    })
  }
  return /^\s*server: "?([^"\n]+)"?$/m.exec(readFileSync(kubeconfigPath, 'utf8'))?.[1] ?? ''
}

function kubeconfigOf({ node, url, ca, certificate, key }: Record<'node' | 'url' | 'ca' | 'certificate' | 'key', string>): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  // JSON is YAML.
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'oarlock', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: node, user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } }],
    contexts: [{ name: 'oarlock', context: { cluster: 'oarlock', user: node } }],
    'current-context': 'oarlock',
  }
  return `${JSON.stringify(config, undefined, 2)}\n`
}

/** The part of a KubeletConfiguration with which only the server can use the kubelet, and the server can trust it. */
function configurationOf(file: (name: string) => string): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: ${JSON.stringify(file('client-ca.crt'))}
authorization:
  mode: Webhook
tlsCertFile: ${JSON.stringify(file('kubelet.crt'))}
tlsPrivateKeyFile: ${JSON.stringify(file('kubelet.key'))}
`
}
