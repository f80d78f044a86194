/** Durable writes and reads of the embedded server, by number of writers. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import type { LoadOrder, LoadReport } from './load/generator.ts'
import { type Endpoint, RawConnection } from './load/raw-connection.ts'
import type { Bench } from './run.ts'
import { startServerProcess } from './server-process.ts'

const writerCounts = [1, 16, 50, 200]

/** The CRD that every server bench writes to: a status subresource and a typed spec. */
export const widgetCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.bench.oarlock.dev' },
  spec: {
    group: 'bench.oarlock.dev',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  text: { type: 'string' },
                  parts: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: { name: { type: 'string' }, image: { type: 'string' }, size: { type: 'integer' } },
                    },
                  },
                },
              },
              status: { type: 'object', properties: { phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

/** Reads where a kubeconfig made by the embedded server points, and its credentials. */
export function endpointOf(kubeconfigPath: string): Endpoint {
  const config = parse(readFileSync(kubeconfigPath, 'utf8'))
  const url = new URL(config.clusters[0].cluster.server)
  const ca = Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  return { host: url.hostname, port: Number(url.port), ca, token: config.users[0].user.token }
}

export async function generateLoad(order: LoadOrder): Promise<LoadReport> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'load', 'generator.ts'), JSON.stringify(order)])
  return JSON.parse(stdout)
}

export async function bench(): Promise<Bench> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const server = await startServerProcess(dataDir)
  try {
    const endpoint = endpointOf(server.kubeconfigPath)
    const connection = await RawConnection.open(endpoint)
    const { status, body } = await connection.request(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      JSON.stringify(widgetCrd),
    )
    if (status !== 201) throw new Error(`the server refused the CRD of the bench: ${status} ${body}`)
    connection.close()
    const idleRssMb = server.rssMb()

    const rows: Bench['rows'] = []
    for (const writers of writerCounts) {
      const requests = writers === 1 ? 2_000 : 10_000
      for (const operation of ['create', 'status', 'update', 'get'] as const) {
        console.error(`${operation} with ${writers} writers…`)
        const report = await generateLoad({ endpoint, operation, writers, requests, namespace: 'default', prefix: `w${writers}` })
        rows.push({
          operation,
          writers,
          'per second': report.perSecond,
          'p50 ms': report.p50Ms,
          'p99 ms': report.p99Ms,
          failed: report.failed,
          'server RSS MB': server.rssMb(),
        })
      }
    }
    return {
      title: 'Embedded API server: durable operations on a 1.1 KB custom resource',
      about: `TLS, fsync on, closed-loop load generator in its own process on the same machine; server idle at ${Math.round(idleRssMb)} MB RSS`,
      rows,
    }
  } finally {
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
