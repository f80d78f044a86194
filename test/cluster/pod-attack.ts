/**
 * A program of a Run in a worker Pod, which attacks with the token that the kubelet has given to its worker. Its text is the source of a Stack: it
 * imports nothing. It writes what each request is answered with to the outputs of the Stack.
 */
export function attack(): void {
  const { readFileSync, writeFileSync } = process.getBuiltinModule('node:fs')
  const { request } = process.getBuiltinModule('node:https')
  const { hostname } = process.getBuiltinModule('node:os')
  const token = readFileSync('/var/run/secrets/oarlock.dev/worker/token', 'utf8').trim()
  const worker = hostname()
  const own = '/apis/oarlock.dev/v1alpha1'
  const core = '/api/v1/namespaces'
  const pod = {
    metadata: { name: 'p' },
    spec: { serviceAccountName: 'oarlock-controller', containers: [{ name: 'a', image: 'a' }] },
  }
  const send = (method: string, path: string, body?: object) =>
    new Promise<{ code: number; text: string }>((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) }
      const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc' } = process.env
      const sent = request({ host, port: 443, method, path, headers, rejectUnauthorized: false }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', chunk => (text += chunk))
        response.on('end', () => resolve({ code: response.statusCode ?? 0, text }))
      })
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })
  const sendAll = async () => {
    const runs = `${own}/namespaces/shop/runs`
    const runOf = async (selector: string) => {
      const { text } = await send('GET', `${runs}?limit=1&fieldSelector=${encodeURIComponent(selector)}`)
      return `${runs}/${JSON.parse(text).items[0].metadata.name}`
    }
    const [ownRun, otherRun] = [await runOf(`spec.workerName=${worker}`), await runOf(`spec.workerName!=${worker}`)]
    const attempts: [string, string, string, object?][] = [
      ['status of its own Worker', 'PATCH', `${own}/workers/${worker}/status?dryRun=All`, { status: { phase: 'Busy' } }],
      ['own trust domain', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { spec: { trustDomain: 'shop' } }],
      ['own labels', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { metadata: { labels: { gpu: 'yes' } } }],
      ['own pool', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { spec: { pool: 'other' } }],
      ['status of its own Run', 'PATCH', `${ownRun}/status?dryRun=All`, { status: { phase: 'Applying' } }],
      ['its own Run', 'PATCH', `${ownRun}?dryRun=All`, { spec: { cancel: true } }],
      ['status of another Run', 'PATCH', `${otherRun}/status?dryRun=All`, { status: { phase: 'Succeeded' } }],
      ['Secrets of Stacks', 'GET', `${core}/shop/secrets`],
      ['a Secret of the Stack', 'GET', `${core}/shop/secrets/login`],
      ['Secrets of the system', 'GET', `${core}/oarlock-system/secrets`],
      ['a Pod of a component', 'POST', `${core}/oarlock-system/pods?dryRun=All`, pod],
      ['a token of a component', 'POST', `${core}/oarlock-system/serviceaccounts/oarlock-controller/token`, { spec: {} }],
      ['Lease of the stores', 'PATCH', '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock-stores', { spec: {} }],
      ['address of the stores', 'PATCH', `${core}/oarlock-system/configmaps/oarlock-endpoint-stores`, { data: { url: 'https://evil' } }],
    ]
    const codes: Record<string, number> = {}
    for (const [what, method, path, body] of attempts) codes[what] = (await send(method, path, body)).code
    const outputs = { codes, password: process.env.password === 'of-web' }
    writeFileSync(process.env.OARLOCK_OUTPUTS ?? '', JSON.stringify(outputs))
  }
  void sendAll()
}
